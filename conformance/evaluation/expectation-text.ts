import type { Expectation } from '../cases/case.js'

/** An expectation in the words of the truth table. */
export function expectationText(expect: Expectation): string {
  if (expect.outcome !== 'reached') return expect.outcome
  const { servers, source, hits = 'all' } = expect
  const who =
    servers.length === 1
      ? servers[0]
      : `${{ all: '', evenly: 'evenly ', one: 'one of ', several: 'several of ', some: 'some of ' }[hits]}${servers.join(' ')}`
  return `${who}${{ kept: ', source kept', node: ', from the node', any: '' }[source]}`
}

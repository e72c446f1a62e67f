import { KpngError } from '@kpng/api'
import fc from 'fast-check'
import { dump } from 'js-yaml'
import { expect, it } from 'vitest'
import { damaged, damagedText, fuzzing, oddTexts } from '../../../../scripts/testing/damaged.js'
import { resolveContext } from './context.js'
import { mergeKubeconfigs, parseKubeconfig } from './kubeconfig.js'

// Whatever a kubeconfig says, it is used, or refused with a sentence.

const good = {
  ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'here' },
  contexts: [{ name: 'here', context: { cluster: 'one', user: 'me', namespace: 'default' } }],
  clusters: [
    {
      name: 'one',
      cluster: {
        ...{ server: 'https://10.0.0.1:6443', 'certificate-authority-data': 'YQ==', 'tls-server-name': 'kube' },
        ...{ 'insecure-skip-tls-verify': false, 'proxy-url': 'http://127.0.0.1:3128' },
      },
    },
  ],
  users: [
    { name: 'me', user: { token: 'secret', exec: { command: 'a', args: ['b'], env: [{ name: 'A', value: 'b' }] } } },
  ],
}

function read(text: string): void {
  try {
    resolveContext(mergeKubeconfigs([parseKubeconfig('config', text), parseKubeconfig('other', '')]))
  } catch (error) {
    if (!(error instanceof KpngError)) throw error
  }
}

const asText = (document: unknown): string => dump(document, { skipInvalid: true })

it('is used as it is', () => {
  const { exec: _, ...user } = good.users[0]?.user ?? {}
  const config = parseKubeconfig('config', asText({ ...good, users: [{ name: 'me', user }] }))
  expect(resolveContext(config)).toMatchObject({})
})

it('with damaged fields is used or refused', () => {
  fc.assert(fc.property(damaged(good).map(asText), read), fuzzing<string>([]))
})

it('with damaged text is used or refused', () => {
  fc.assert(fc.property(damagedText(asText(good)), read), fuzzing(oddTexts))
})

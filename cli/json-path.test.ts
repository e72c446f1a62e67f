import { describe, expect, test } from 'vitest'
import { jsonPath } from './json-path.js'

const value = {
  services: [
    { name: 'web', ports: ['80/tcp', '443/tcp'], endpoints: 3, labels: { 'app.kubernetes.io/name': 'web' } },
    { name: 'db', ports: [], endpoints: 0, problems: ['it has "quotes"'] },
  ],
}

test.each([
  ['{.services[*].name}', 'web db'],
  ['{.services[0].ports}', '["80/tcp","443/tcp"]'],
  ['{.services[-1].name}', 'db'],
  ['{$.services[1].endpoints}', '0'],
  ["{.services[0]['name']}", 'web'],
  ['{.services[0].labels.app\\.kubernetes\\.io/name}', 'web'],
  ['{.services[?(@.endpoints==0)].name}', 'db'],
  ['{.services[?(@.name!="web")].name}', 'db'],
  ["{.services[?(@.name=='web')].ports[1]}", '443/tcp'],
  ['{range .services[*]}{.name}{"\\t"}{.endpoints}{"\\n"}{end}', 'web\t3\ndb\t0\n'],
  ['names: {.services[*].name}.', 'names: web db.'],
  ['{.nothing.here}', ''],
  ['{.services.constructor}{.services[9]}', ''],
])('%s', (template, expected) => {
  expect(jsonPath(template)(value)).toBe(expected)
})

describe('what cannot be read is wrong usage', () => {
  test.each([
    ['{.services', 'a brace is not closed'],
    ['{range .services[*]}{.name}', '{range …} has no {end}'],
    ['{.name}{end}', '{end} has no {range …} before it'],
    ['{.services[?(@.a=="b)]}', 'a brace is not closed'],
    ['{.services[a]}', 'is not a part of a path'],
  ])('%s', (template, sentence) => {
    expect(() => jsonPath(template)).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringContaining(sentence) }),
    )
  })
})

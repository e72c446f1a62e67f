import { expect, test } from 'vitest'
import { changeSentence, type ServiceDifference } from './change-sentence.js'

const ip = '10.244.3.4'

test.each<[Partial<ServiceDifference>, string]>([
  [{ what: 'new', added: [ip] }, 'default/web is new, with 1 endpoint'],
  [{ what: 'new' }, 'default/web is new, with 0 endpoints'],
  [{ what: 'deleted' }, 'default/web was deleted'],
  [{}, 'default/web was changed'],
  [{ added: [ip] }, '10.244.3.4 of default/web is used now'],
  [{ added: [ip, '10.244.3.5'] }, '2 endpoints of default/web are used now'],
  [{ removed: [{ ip, why: 'not-ready' }] }, '10.244.3.4 of default/web is not ready'],
  [{ removed: [{ ip, why: 'terminating' }] }, '10.244.3.4 of default/web is terminating'],
  [{ removed: [{ ip, why: 'gone' }] }, '10.244.3.4 of default/web is gone'],
  [{ removed: [{ ip }] }, '10.244.3.4 of default/web is no longer used'],
  [
    { removed: [{ ip, why: 'hints-other-zone' }] },
    '10.244.3.4 of default/web is no longer used: its hints are for other zones',
  ],
  [
    {
      removed: [
        { ip, why: 'gone' },
        { ip: '10.244.3.5', why: 'gone' },
      ],
    },
    '2 endpoints of default/web are no longer used: they are gone',
  ],
  [{ removed: [{ ip, why: 'gone' }], added: ['10.244.3.5'] }, 'default/web: 1 endpoint more, 1 fewer'],
])('%j', (difference, sentence) => {
  expect(changeSentence({ service: 'default/web', what: 'changed', added: [], removed: [], ...difference })).toBe(
    sentence,
  )
})

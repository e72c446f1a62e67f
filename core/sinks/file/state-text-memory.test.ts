import { expect, test } from 'vitest'
import { heapMb } from '../../testing/heap.js'
import { largeService } from '../../testing/large-service.js'
import { syncedStore } from '../../testing/objects.js'
import { StateText } from './state-text.js'

test('texts of old states are let go, though the log of changes holds their entries', () => {
  const store = syncedStore()
  const large = largeService(store, { endpoints: 2000 })
  const text = new StateText()
  text.render(store)
  const before = heapMb()
  for (let change = 0; change < 40; change++) {
    large.change()
    // Flat, as it is when it has been written: text that is only put together from pieces holds on to other things.
    Buffer.from(text.render(store).join(''))
  }
  expect(heapMb() - before).toBeLessThan(5)
})

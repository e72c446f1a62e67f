import { describe, expect, it } from 'vitest'
import { selectionForProxy } from './service-proxy-name.js'

const proxyName = 'service.kubernetes.io/service-proxy-name'
const headless = 'service.kubernetes.io/headless'
const object = (labels: Record<string, string> | undefined, spec: object = { clusterIP: '10.0.0.1' }) => ({
  metadata: { name: 'web', ...(labels && { labels }) },
  spec,
})

describe('the default proxy (checklist 1-3)', () => {
  const selection = selectionForProxy()

  it('asks the API server for the same', () => {
    expect(selection.serviceLabelSelector).toBe(`!${proxyName}`)
    expect(selection.serviceFieldSelector).toBe('spec.clusterIP!=None')
    expect(selection.sliceLabelSelector).toBe(`!${headless}`)
  })

  it.each([
    ['no labels', object(undefined), true, true],
    ['another label', object({ app: 'web' }), true, true],
    ['the label of another proxy', object({ [proxyName]: 'other' }), false, true],
    ['an empty proxy name', object({ [proxyName]: '' }), false, true],
    ['the headless label', object({ [headless]: '' }), true, false],
    ['clusterIP None', object({}, { clusterIP: 'None' }), false, true],
    ['clusterIPs None', object({}, { clusterIPs: ['None'] }), false, true],
    ['something that is no object', 7, true, true],
  ])('%s', (_, given, service, slice) => {
    expect(selection.takesService(given)).toBe(service)
    expect(selection.takesSlice(given)).toBe(slice)
  })
})

describe('a specialised proxy (checklist 2)', () => {
  const selection = selectionForProxy('mine')

  it('asks the API server for the same', () => {
    expect(selection.serviceLabelSelector).toBe(`${proxyName}=mine`)
    expect(selection.serviceFieldSelector).toBe('')
    expect(selection.sliceLabelSelector).toBe('')
  })

  it.each([
    ['no labels', object(undefined), false],
    ['its own name', object({ [proxyName]: 'mine' }), true],
    ['its own name, headless', object({ [proxyName]: 'mine', [headless]: '' }, { clusterIP: 'None' }), true],
    ['another name', object({ [proxyName]: 'yours' }), false],
  ])('%s', (_, given, taken) => {
    expect(selection.takesService(given)).toBe(taken)
    // A slice is served if its Service is.
    expect(selection.takesSlice(given)).toBe(true)
  })
})

import { matchesLabels } from '@kpng/api'
import { describe, expect, it } from 'vitest'
import { matchesFields, metadataFields, parseFieldSelector } from './fields.js'
import { parseLabelSelector } from './labels.js'

const labels = { app: 'web', tier: 'front', 'example.com/x': '' }

describe('label selectors', () => {
  it.each([
    ['', true],
    ['app=web', true],
    ['app==web,tier=front', true],
    ['app=db', false],
    ['app!=db', true],
    ['app!=web', false],
    ['nope!=x', true],
    ['app in (web,db)', true],
    ['app in (db)', false],
    ['app notin (db, cache)', true],
    ['nope notin (a)', true],
    ['app', true],
    ['nope', false],
    ['!nope', true],
    ['!app', false],
    ['example.com/x', true],
    ['example.com/x=', true],
    ['!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name', true],
    ['app in (web),tier notin (back),!nope', true],
  ])('%s → %s', (selector, expected) => {
    expect(matchesLabels(parseLabelSelector(selector), labels)).toBe(expected)
  })
  it('refuses what it cannot read', () => {
    expect(() => parseLabelSelector('a b c')).toThrow('unable to parse requirement')
    expect(() => parseLabelSelector('-x=y')).toThrow('not a label name')
  })
})

describe('field selectors', () => {
  const object = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'demo' } }
  it.each([
    ['metadata.name=web', true],
    ['metadata.name==web,metadata.namespace=demo', true],
    ['metadata.name!=web', false],
    ['metadata.namespace!=default', true],
  ])('%s → %s', (selector, expected) => {
    expect(matchesFields(parseFieldSelector(selector, metadataFields), metadataFields, object)).toBe(expected)
  })
  it('refuses a field the kind cannot be selected by', () => {
    expect(() => parseFieldSelector('spec.color=red', metadataFields)).toThrow('field label not supported: spec.color')
  })
})

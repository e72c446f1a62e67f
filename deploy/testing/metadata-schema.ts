import { type Check, map, object, text } from './checks.js'

const label: Check = (value, path) =>
  /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/.test(`${value}`)
    ? text(value, path)
    : [`${path}: ${value} is no label`]

export const labels = map(label)
export const labelSelector = object({ 'matchLabels!': labels })

const name: Check = (value, path) =>
  /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(`${value}`) ? [] : [`${path}: ${value} is no name of an object`]

export const clusterWide = object({ 'name!': name, labels, annotations: map(text) })
export const namespaced = object({ 'name!': name, 'namespace!': name, labels, annotations: map(text) })

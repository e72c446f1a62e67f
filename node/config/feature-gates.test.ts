import { expect, test } from 'vitest'
import { gateWarnings, isOn } from './feature-gates.js'

const warned = (gate: string, value: boolean) => gateWarnings({ [gate]: value }).map(({ message }) => message)

test('gates that kpng obeys have the defaults of kube-proxy, and no warning', () => {
  expect(isOn({}, 'AllowServiceExternalIPs')).toBe(true)
  expect(isOn({ AllowServiceExternalIPs: false }, 'AllowServiceExternalIPs')).toBe(false)
  expect([...warned('AllowServiceExternalIPs', false), ...warned('KubeProxyIPVS', false)]).toEqual([])
})

test('gates that stand for what kpng always does are warned about if they are off', () => {
  expect(warned('PreferSameTrafficDistribution', true)).toEqual([])
  expect(warned('PreferSameTrafficDistribution', false)).toEqual([
    'featureGates.PreferSameTrafficDistribution is false, and has no effect here: kpng always does what it stands for.',
  ])
})

test.each([
  ['ComponentFlagz', 'it does not change which Services kpng serves, or how'],
  ['AllowServiceExternalIP', 'kpng knows no gate of this name'],
  ['constructor', 'kpng knows no gate of this name'],
])('%s has no effect, and the warning names it', (gate, why) => {
  expect(warned(gate, true)).toEqual([
    expect.stringContaining(`featureGates.${gate} is true, and has no effect here: ${why}`),
  ])
})

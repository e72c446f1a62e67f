import type { Cause } from '../status/status.js'

/** The sentences of `k8s.io/apimachinery/pkg/util/validation/field`: people search for them word by word. */
const shown = (value: unknown): string => JSON.stringify(value) ?? 'null'

export const invalidValue = (field: string, value: unknown, why: string): Cause => ({
  reason: 'FieldValueInvalid',
  message: `Invalid value: ${shown(value)}: ${why}`,
  field,
})

export const requiredValue = (field: string, why = ''): Cause => ({
  reason: 'FieldValueRequired',
  message: why === '' ? 'Required value' : `Required value: ${why}`,
  field,
})

export const forbiddenValue = (field: string, why: string): Cause => ({
  reason: 'FieldValueForbidden',
  message: `Forbidden: ${why}`,
  field,
})

export const duplicateValue = (field: string, value: unknown): Cause => ({
  reason: 'FieldValueDuplicate',
  message: `Duplicate value: ${shown(value)}`,
  field,
})

export const unsupportedValue = (field: string, value: unknown, supported: readonly string[]): Cause => ({
  reason: 'FieldValueNotSupported',
  message: `Unsupported value: ${shown(value)}: supported values: ${[...supported].sort().map(shown).join(', ')}`,
  field,
})

export const tooLong = (field: string, limit: number): Cause => ({
  reason: 'FieldValueTooLong',
  message: `Too long: may not be more than ${limit} bytes`,
  field,
})

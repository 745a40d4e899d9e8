import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { callsOf, shapeOf, type Description } from './description'

const description = JSON.parse(
  readFileSync(new URL('../../../docs/openapi.json', import.meta.url), 'utf8'),
) as Description

test('every call of the committed description is drawn with its shapes', () => {
  const calls = callsOf(description)
  const count = Object.values(description.paths).reduce((sum, operations) => sum + Object.keys(operations).length, 0)
  expect(calls).toHaveLength(count)
  for (const call of calls) {
    expect(call.summary).not.toBe('')
    for (const { schema } of call.answers) if (schema) expect(shapeOf(description, schema)).not.toBe('')
  }
})

test('a shape that holds itself ends', () => {
  const loop: Description = {
    paths: {},
    components: { schemas: { A: { properties: { a: { $ref: '#/components/schemas/A' } }, required: ['a'] } } },
  }
  expect(shapeOf(loop, { $ref: '#/components/schemas/A' })).toContain('a: ')
})

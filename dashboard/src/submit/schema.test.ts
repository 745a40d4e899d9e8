import { expect, test } from 'vitest'
import { offers, type JsonSchema } from './schema'

const schema: JsonSchema = {
  properties: {
    kind: { $ref: '#/$defs/JobKind' },
    exclusive: { type: ['boolean', 'null'], description: 'Never two at once.' },
    resources: { oneOf: [{ type: 'null' }, { $ref: '#/$defs/Resources' }] },
  },
  $defs: {
    JobKind: { type: 'string', enum: ['task', 'service'] },
    Resources: { type: 'object', properties: { cpu: { type: 'number' }, memory: {} } },
    Loop: { $ref: '#/$defs/Loop' },
  },
}
const labels = (path: string[], property: string | null) => offers(schema, path, property).map((offer) => offer.label)

test('names at the top and in an object behind a reference', () => {
  expect(labels([], null)).toEqual(['"kind"', '"exclusive"', '"resources"'])
  expect(labels(['resources'], null)).toEqual(['"cpu"', '"memory"'])
  expect(labels(['nothing'], null)).toEqual([])
})

test('values of words and of booleans', () => {
  expect(labels([], 'kind')).toEqual(['"task"', '"service"'])
  expect(labels([], 'exclusive')).toEqual(['true', 'false'])
  expect(offers(schema, [], 'kind')[0]?.apply).toBe('"task"')
})

test('a reference to itself ends', () => {
  expect(offers({ properties: { a: { $ref: '#/$defs/Loop' } }, ...schema }, ['a'], null)).toEqual([])
})

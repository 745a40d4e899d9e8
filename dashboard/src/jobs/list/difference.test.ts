import { expect, test } from 'vitest'
import type { Schemas } from '../../api/client'
import { countDifference, patch } from './difference'

type JobRow = Schemas['JobRow']
const row = (id: string, more: Partial<JobRow> = {}) =>
  ({ id, status: 'running', created_time: '2026-11-30T12:00:00Z', ...more }) as JobRow
const rows = (...ids: string[]) => ids.map((id) => row(id))

test.each([
  ['the same', rows('c', 'b', 'a'), rows('c', 'b', 'a'), null, 0],
  ['one came', rows('b', 'a'), rows('c', 'b', 'a'), null, 1],
  ['one no longer matches', rows('c', 'b', 'a'), rows('c', 'a'), null, 1],
  ['the newest page ends above what was loaded further down', rows('d', 'c', 'b', 'a'), rows('d', 'c'), 'more', 0],
  ['one came and pushed another off the page', rows('c', 'b', 'a'), rows('d', 'c'), 'more', 1],
  ['all went', rows('b', 'a'), [], null, 2],
  ['nothing is known yet', rows('b', 'a'), undefined, null, 0],
])('%s', (_, shown, newest, more, count) => {
  expect(countDifference(shown, newest, more)).toBe(count)
})

test('a change that is newer than the row counts, an older one does not', () => {
  const running = row('a', { started_time: '2026-11-30T12:00:05Z' })
  expect(patch(running, { status: 'success', time: '2026-11-30T12:00:09Z' })).toMatchObject({
    status: 'success',
    finished_time: '2026-11-30T12:00:09Z',
  })
  expect(patch(running, { status: 'waiting', time: '2026-11-30T12:00:01Z' })).toBe(running)
  expect(patch(running, undefined)).toBe(running)
})

import { expect, test } from 'vitest'
import type { Schemas } from '../../api/client'
import { stretches, waitStarts } from './phases'

const at = (second: number) => new Date(Date.UTC(2026, 10, 30, 12, 0, second)).toISOString()
const ms = (second: number) => Date.parse(at(second))
const attempt = (times: Partial<Schemas['Attempt']>) =>
  ({ number: 1, placed_time: at(5), ...times }) as Schemas['Attempt']
const event = (to: string, second: number, number: number | null = 1) =>
  ({ to, time: at(second), attempt: number }) as Schemas['Event']

test('an attempt that went all the way has five stretches without gaps', () => {
  const whole = attempt({ accepted_time: at(6), started_time: at(8), finished_time: at(20) })
  const found = stretches(whole, [event('finishing', 18)], ms(0), ms(99))
  expect(found.map(({ stage, from, to }) => [stage, (to - from) / 1000])).toEqual([
    ['wait', 5],
    ['push', 1],
    ['staging', 2],
    ['run', 10],
    ['upload', 2],
  ])
})

test('what goes on ends now', () => {
  expect(stretches(attempt({ accepted_time: at(6), started_time: at(8) }), [], ms(5), ms(30)).at(-1)).toEqual({
    stage: 'run',
    from: ms(8),
    to: ms(30),
  })
})

test('an attempt that never started has no run', () => {
  expect(stretches(attempt({ finished_time: at(15) }), [], ms(0), ms(99)).map(({ stage }) => stage)).toEqual([
    'wait',
    'push',
  ])
})

test('clocks that disagree make no negative stretch', () => {
  const skewed = attempt({ accepted_time: at(6), started_time: at(9), finished_time: at(8) })
  for (const { from, to } of stretches(skewed, [], ms(0), ms(99))) expect(to).toBeGreaterThanOrEqual(from)
})

test('each attempt waits from the last time that the job was put to wait before it', () => {
  const attempts = [attempt({ placed_time: at(5) }), attempt({ number: 2, placed_time: at(30) })]
  const events = [event('waiting', 1, null), event('waiting', 25, null)]
  expect(waitStarts(attempts, events, at(0))).toEqual([ms(1), ms(25)])
})

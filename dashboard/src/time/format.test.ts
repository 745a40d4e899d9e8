import { expect, test } from 'vitest'
import { bytes, duration, fullTime, parseDuration, shortTime } from './format'

process.env['TZ'] = 'America/New_York'

test.each([
  [-5_000, '0ms'],
  [Number.NaN, '0ms'],
  [12, '12ms'],
  [999.6, '1,000ms'],
  [1_000, '1s'],
  [1_249, '1.2s'],
  [9_949, '9.9s'],
  [9_950, '10s'],
  [59_600, '1m'],
  [61_000, '1m 1s'],
  [3_600_000, '1h'],
  [5_430_000, '1h 30m'],
  [90_061_000, '1d 1h'],
])('%d ms is written %s', (ms, text) => {
  expect(duration(ms, 'en')).toBe(text)
})

test('durations are written in the language', () => {
  expect(duration(61_000, 'zh-TW')).toBe('1分鐘 1秒')
  expect(duration(61_000, 'zh-CN')).toBe('1分钟 1秒')
})

test('the two 01:30 of the repeated hour differ by their offset', () => {
  const first = fullTime(new Date('2026-11-01T05:30:00Z'), 'en', 'local')
  const second = fullTime(new Date('2026-11-01T06:30:00Z'), 'en', 'local')
  expect(first).toBe('Nov 1, 2026, 01:30:00 GMT-04:00')
  expect(second).toBe('Nov 1, 2026, 01:30:00 GMT-05:00')
})

test('the short form says the day only when it is another', () => {
  const now = new Date('2026-11-30T18:00:00Z')
  expect(shortTime(new Date('2026-11-30T17:05:06Z'), now, 'en', 'utc')).toBe('17:05:06')
  expect(shortTime(new Date('2026-11-29T17:05:06Z'), now, 'en', 'utc')).toBe('Nov 29, 17:05:06')
  expect(shortTime(new Date('2025-11-29T17:05:06Z'), now, 'en', 'utc')).toBe('Nov 29, 2025, 17:05:06')
})

test.each([
  [0, '0 B'],
  [1023, '1,023 B'],
  [1024, '1 KiB'],
  [134_217_728, '128 MiB'],
  [1_610_612_736, '1.5 GiB'],
])('%d bytes are %s', (count, text) => {
  expect(bytes(count, 'en')).toBe(text)
})

test.each([
  ['90s', 90_000],
  ['1.5h', 5_400_000],
  ['2d', 172_800_000],
  ['2', null],
  ['soon', null],
])('%s as a duration', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

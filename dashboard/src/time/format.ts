// How times and durations are written. Pure: language, zone and "now" are arguments.

export type Zone = 'local' | 'utc'

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/** The two largest units of a duration in milliseconds; below ten seconds with a tenth, below one in milliseconds. Never negative. */
export function duration(ms: number, language: string): string {
  const rest = Math.max(0, Number.isFinite(ms) ? ms : 0)
  if (rest < 1_000) return unit(Math.round(rest), 'millisecond', language)
  if (rest < 9_950) return unit(Math.round(rest / 100) / 10, 'second', language)
  const whole = Math.round(rest / 1_000) * 1_000
  const index = UNITS.findIndex(([, size]) => whole >= size)
  const [large, largeSize] = UNITS[index] ?? UNITS[3]
  const first = unit(Math.floor(whole / largeSize), large, language)
  const next = UNITS[index + 1]
  if (next === undefined) return first
  const [small, smallSize] = next
  const second = Math.floor((whole % largeSize) / smallSize)
  return second === 0 ? first : `${first} ${unit(second, small, language)}`
}

function unit(value: number, name: string, language: string): string {
  return cached(
    `${language} ${name}`,
    numbers,
    () => new Intl.NumberFormat(language, { style: 'unit', unit: name, unitDisplay: 'narrow' }),
  )
    .format(value)
    .replaceAll(/\s/g, '')
}

/** Short, for lists: the time of day when it is today, else day and time; a year when it is another. */
export function shortTime(time: Date, now: Date, language: string, zone: Zone): string {
  const day = (date: Date) => format(date, language, zone, { year: 'numeric', month: '2-digit', day: '2-digit' })
  const clock = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const
  if (day(time) === day(now)) return format(time, language, zone, clock)
  const year = (date: Date) => format(date, language, zone, { year: 'numeric' })
  if (year(time) === year(now)) return format(time, language, zone, { month: 'short', day: 'numeric', ...clock })
  return format(time, language, zone, { year: 'numeric', month: 'short', day: 'numeric', ...clock })
}

/** In full with its offset, so that the two half past one of a night in autumn differ. */
export function fullTime(time: Date, language: string, zone: Zone): string {
  return format(time, language, zone, {
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'longOffset',
  })
}

/** With milliseconds, for logs. */
export function logTime(time: Date, language: string, zone: Zone): string {
  return format(time, language, zone, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    hourCycle: 'h23',
  })
}

/** What is shown on hover: the reader's zone with its offset, and UTC. */
export function bothTimes(time: Date, language: string): string {
  return `${fullTime(time, language, 'local')}\n${time.toISOString().replace('.000Z', 'Z')}`
}

/** The name of the zone that times are shown in, with its offset at the moment. */
export function zoneName(now: Date, language: string, zone: Zone): string {
  if (zone === 'utc') return 'UTC'
  const parts = new Intl.DateTimeFormat(language, { timeZoneName: 'shortOffset' }).formatToParts(now)
  return parts.find((part) => part.type === 'timeZoneName')?.value ?? ''
}

function format(time: Date, language: string, zone: Zone, options: Intl.DateTimeFormatOptions): string {
  const full = zone === 'utc' ? { ...options, timeZone: 'UTC' } : options
  return cached(
    `${language} ${zone} ${JSON.stringify(options)}`,
    dates,
    () => new Intl.DateTimeFormat(language, full),
  ).format(time)
}

const numbers = new Map<string, Intl.NumberFormat>()
const dates = new Map<string, Intl.DateTimeFormat>()

function cached<T>(key: string, cache: Map<string, T>, make: () => T): T {
  const found = cache.get(key) ?? make()
  cache.set(key, found)
  return found
}

/** Bytes with a binary unit: `4 GiB`, `0.6 GiB`, `812 B`. */
export function bytes(count: number, language: string): string {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  const power = count < 1024 ? 0 : Math.min(names.length - 1, Math.floor(Math.log2(count) / 10))
  const value = count / 1024 ** power
  const digits = power === 0 || value >= 100 ? 0 : 1
  return `${new Intl.NumberFormat(language, { maximumFractionDigits: digits }).format(value)} ${names[power]}`
}

/** `2h`, `30m`, `1d`, `90s` in milliseconds; `null` for anything else. */
export function parseDuration(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)(s|m|h|d|w)$/.exec(text.trim())
  if (match === null) return null
  const sizes: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
  return Number(match[1]) * (sizes[match[2] ?? ''] ?? 0)
}

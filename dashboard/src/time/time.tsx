// Times as components: short text, everything on hover, one ticker for all that count.
import { useSyncExternalStore } from 'react'
import { usePreferences } from '../app/preferences'
import { serverNow } from '../api/client'
import { language, useT } from '../i18n/i18n'
import { bothTimes, duration, fullTime, shortTime } from './format'

let now = serverNow()
let timer: ReturnType<typeof setInterval> | undefined
const watchers = new Set<() => void>()

function watch(watcher: () => void) {
  watchers.add(watcher)
  timer ??= setInterval(() => {
    now = serverNow()
    for (const each of watchers) each()
  }, 1_000)
  return () => {
    watchers.delete(watcher)
    if (watchers.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The server's time in milliseconds, anew each second. */
export function useNow(): number {
  return useSyncExternalStore(watch, () => now)
}

interface TimeProps {
  value: string | null | undefined
  /** With date and offset instead of the short form. */
  full?: boolean
}

export function Time({ value, full = false }: TimeProps) {
  const { zone } = usePreferences()
  useT()
  if (!value) return <span className="muted">–</span>
  const time = new Date(value)
  const text = full ? fullTime(time, language(), zone) : shortTime(time, new Date(serverNow()), language(), zone)
  return (
    <time dateTime={value} title={bothTimes(time, language())} className={full ? undefined : 'nowrap'}>
      {text}
    </time>
  )
}

interface SpanProps {
  from: string | null | undefined
  /** Counts on while it is absent. */
  to?: string | null | undefined
}

/** How long from one instant to another, or to now. */
export function Span({ from, to }: SpanProps) {
  if (!from) return <span className="muted">–</span>
  return to ? <FixedSpan ms={Date.parse(to) - Date.parse(from)} /> : <RunningSpan from={from} />
}

function RunningSpan({ from }: { from: string }) {
  const ms = useNow() - Date.parse(from)
  // Whole seconds: a tenth that changes each second only flickers.
  return <FixedSpan ms={Math.floor(Math.max(0, ms) / 1_000) * 1_000} />
}

export function FixedSpan({ ms }: { ms: number }) {
  useT()
  return <span className="nowrap">{duration(ms, language())}</span>
}

/** "3 min ago" or "in 40 s". */
export function Ago({ value }: { value: string }) {
  const t = useT()
  const difference = useNow() - Date.parse(value)
  const whole = Math.floor(Math.abs(difference) / 1_000) * 1_000
  const text = duration(whole, language())
  return (
    <time dateTime={value} title={bothTimes(new Date(value), language())} className="nowrap">
      {difference < 0 ? t('time.in', { duration: text }) : t('time.ago', { duration: text })}
    </time>
  )
}

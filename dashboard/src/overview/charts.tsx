import { useMemo } from 'react'
import { language, useT } from '../i18n/i18n'
import { duration } from '../time/format'
import type { Minute } from './calls'
import { Chart, type Series } from './chart'

const plain = (value: number) => new Intl.NumberFormat(language(), { maximumFractionDigits: 1 }).format(value)
const span = (value: number) => duration(value, language())

/** Jobs that ended, well and not, in each stretch of `step` minutes; and the share of those that failed. */
export function Outcomes({ items, step }: { items: Minute[]; step: number }) {
  const t = useT()
  const times = useMemo(() => items.map((item) => Date.parse(item.time)), [items])
  const series = useMemo<Series[]>(
    () => [
      // Drawn over each other: the whole first, then what of it failed.
      { label: t('chart.ended'), colour: '--success', values: items.map(ended), bars: true },
      {
        label: t('status.final_failed'),
        colour: '--failed',
        values: items.map((item) => item.ended['final_failed'] ?? 0),
        bars: true,
      },
      { label: t('chart.submitted'), colour: '--muted', values: items.map((item) => item.submitted), dashed: true },
    ],
    [items, t],
  )
  const all = items.reduce((sum, item) => sum + ended(item), 0)
  const failed = items.reduce((sum, item) => sum + (item.ended['final_failed'] ?? 0), 0)
  const minutes = items.length * step
  const rate = new Intl.NumberFormat(language(), { style: 'percent', maximumFractionDigits: 1 })
  return (
    <>
      <p className="chart-head">
        {t('chart.rate', { rate: plain(minutes > 0 ? all / minutes : 0) })} ·{' '}
        {t('chart.failed_share', { share: rate.format(all > 0 ? failed / all : 0) })}
      </p>
      <Chart label={t('overview.throughput')} times={times} series={series} format={plain} />
    </>
  )
}

function ended(item: Minute): number {
  return Object.values(item.ended).reduce((sum, count) => sum + count, 0)
}

/** How long jobs waited before they were placed: half of them at most so long, 95 of 100 at most so long. */
export function Waits({ items }: { items: Minute[] }) {
  const t = useT()
  const times = useMemo(() => items.map((item) => Date.parse(item.time)), [items])
  const series = useMemo<Series[]>(
    () => [
      { label: 'p95', colour: '--retry', values: items.map((item) => item.waits.p95_ms ?? null), dashed: true },
      { label: 'p50', colour: '--running', values: items.map((item) => item.waits.p50_ms ?? null) },
    ],
    [items],
  )
  const newest = items.findLast((item) => item.waits.count > 0)
  return (
    <>
      <p className="chart-head">
        {newest
          ? t('chart.wait_now', { half: span(newest.waits.p50_ms ?? 0), most: span(newest.waits.p95_ms ?? 0) })
          : t('chart.nothing_started')}
      </p>
      <Chart label={t('overview.queue_wait')} times={times} series={series} format={span} />
    </>
  )
}

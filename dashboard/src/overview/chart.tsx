// A chart over time on uPlot, in the colours of the theme; its numbers stand below as a table for those who ask.
import { useEffect, useRef, useState } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { usePreferences } from '../app/preferences'
import { language, useT } from '../i18n/i18n'

export interface Series {
  label: string
  /** The name of a colour token, such as `--success`. */
  colour: string
  values: (number | null)[]
  bars?: boolean
  dashed?: boolean
}

interface ChartProps {
  label: string
  /** Milliseconds. */
  times: number[]
  series: Series[]
  format: (value: number) => string
}

const HEIGHT = 190

export function Chart({ label, times, series, format }: ChartProps) {
  const t = useT()
  const box = useRef<HTMLDivElement>(null)
  const { theme, zone } = usePreferences()
  const dark = useDark()
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const colour = (token: string) => resolved(element, token)
    const hours = new Intl.DateTimeFormat(language(), {
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
      ...(zone === 'utc' ? { timeZone: 'UTC' } : {}),
    })
    const axis = {
      stroke: colour('--muted'),
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { show: false },
      font: '11px system-ui',
    }
    const bars = uPlot.paths.bars?.({ size: [0.8, 24] })
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, points: { size: 5 } },
        scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
        axes: [
          { ...axis, values: (_, splits) => splits.map((split) => hours.format(new Date(split * 1_000))) },
          { ...axis, size: 64, values: (_, splits) => splits.map(format) },
        ],
        series: [
          {},
          ...series.map((each) => ({
            label: each.label,
            stroke: colour(each.colour),
            width: each.bars ? 0 : 1.5,
            ...(each.bars && bars ? { points: { show: false }, fill: colour(each.colour), paths: bars } : {}),
            // Where there are gaps a line may be a single point.
            ...(each.values.includes(null) ? { points: { show: true, size: 4, fill: colour(each.colour) } } : {}),
            ...(each.dashed ? { dash: [5, 4] } : {}),
          })),
        ],
      },
      [times.map((time) => time / 1_000), ...series.map((each) => each.values)],
      element,
    )
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [times, series, format, theme, dark, zone])
  return (
    <figure className="chart">
      <div className="row wrap small chart-legend">
        {series.map((each) => (
          <span key={each.label} className="row">
            <i
              className={`swatch ${each.bars ? 'solid' : each.dashed ? 'dashed' : 'line'}`}
              style={{ color: `var(${each.colour})` }}
              aria-hidden="true"
            />
            {each.label}
          </span>
        ))}
      </div>
      <div ref={box} role="img" aria-label={label} className="plot" />
      <details>
        <summary className="small muted">{t('chart.table')}</summary>
        <div className="chart-table">
          <table className="data">
            <thead>
              <tr>
                <th scope="col">{t('column.time')}</th>
                {series.map((each) => (
                  <th key={each.label} scope="col">
                    {each.label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((time, index) =>
                series.some((each) => (each.values[index] ?? 0) !== 0) ? (
                  <tr key={time}>
                    <td className="nowrap">
                      {new Date(time).toLocaleTimeString(language(), zone === 'utc' ? { timeZone: 'UTC' } : {})}
                    </td>
                    {series.map((each) => {
                      const value = each.values[index]
                      return <td key={each.label}>{value === null || value === undefined ? '–' : format(value)}</td>
                    })}
                  </tr>
                ) : null,
              )}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  )
}

/** A canvas can't read tokens: what colour one is at the moment. */
function resolved(element: HTMLElement, token: string): string {
  const probe = document.createElement('i')
  probe.style.color = `var(${token})`
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function useDark(): boolean {
  const [dark, setDark] = useState(() => window.matchMedia('(prefers-color-scheme: dark)').matches)
  useEffect(() => {
    const query = window.matchMedia('(prefers-color-scheme: dark)')
    const changed = () => setDark(query.matches)
    query.addEventListener('change', changed)
    return () => query.removeEventListener('change', changed)
  }, [])
  return dark
}

// One row of the log. Whatever a program wrote becomes text nodes, never markup.
import { memo, useState, type CSSProperties, type ReactNode } from 'react'
import { language, useT } from '../i18n/i18n'
import { logTime, type Zone } from '../time/format'
import { paint, tableColour, type Look, type Run } from './ansi'
import type { Line } from './lines'

export type Times = 'absolute' | 'relative' | 'none'

interface RowProps {
  line: Line
  times: Times
  zone: Zone
  /** What relative times count from, in milliseconds. */
  zero: number
  showStream: boolean
  /** Highlighted wherever it stands; empty for nothing. */
  search: string
  exactCase: boolean
  marked: boolean
  linkLabel: string
  onLink: (line: Line, extend: boolean) => void
}

export const Row = memo(function Row(props: RowProps) {
  const { line, times, zone, zero, showStream, search, exactCase, marked, linkLabel, onLink } = props
  const { runs } = paint(line.bytes, line.look)
  return (
    <div className={`log-row ${marked ? 'marked' : ''} ${line.stream}`}>
      <button
        type="button"
        className="log-number"
        tabIndex={-1}
        aria-label={`${linkLabel} ${line.number ?? line.offset}`}
        title={`${line.stream} @${line.offset}`}
        onClick={(event) => onLink(line, event.shiftKey)}
      >
        {line.number ?? (line.torn ? '·' : '')}
      </button>
      {times !== 'none' && <span className="log-time">{timeText(line.time, times, zone, zero)}</span>}
      {showStream && <span className="log-stream">{line.stream === 'stderr' ? 'err' : 'out'}</span>}
      <span className="log-text">{highlighted(runs, search, exactCase)}</span>
      <Fields runs={runs} />
    </div>
  )
})

/** A line that is a JSON object, field by field, for those who ask. */
function Fields({ runs }: { runs: Run[] }) {
  const t = useT()
  const [open, setOpen] = useState(false)
  const text = runs.length === 1 ? (runs[0]?.text.trim() ?? '') : ''
  if (!text.startsWith('{') || !text.endsWith('}')) return null
  const fields = open ? readObject(text) : null
  return (
    <>
      <button type="button" className="log-fields-button" aria-expanded={open} onClick={() => setOpen(!open)}>
        {t('log.fields')}
      </button>
      {fields && (
        <dl className="log-fields facts">
          {fields.map(([name, value]) => (
            <div key={name} className="fact">
              <dt>{name}</dt>
              <dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
            </div>
          ))}
        </dl>
      )}
    </>
  )
}

function readObject(text: string): [string, unknown][] {
  try {
    return Object.entries(JSON.parse(text) as object)
  } catch {
    // It only looked like an object.
    return []
  }
}

function timeText(time: string | null, times: Times, zone: Zone, zero: number): string {
  if (time === null) return ''
  if (times === 'absolute') return logTime(new Date(time), language(), zone)
  return `+${(Math.max(0, Date.parse(time) - zero) / 1000).toFixed(3)}`
}

/** Runs as elements, with what was searched for marked; a match may begin in one run and end in another. */
function highlighted(runs: Run[], search: string, exactCase: boolean): ReactNode[] {
  if (search === '') return runs.map((run, index) => <Piece key={index} run={run} text={run.text} match={false} />)
  const whole = runs.map((run) => run.text).join('')
  const places = find(whole, search, exactCase)
  const pieces: ReactNode[] = []
  let at = 0
  for (const run of runs) {
    const end = at + run.text.length
    let from = at
    for (const place of places.filter((each) => each < end && each + search.length > at)) {
      const start = Math.max(place, at)
      const stop = Math.min(place + search.length, end)
      if (start > from) pieces.push(<Piece key={from} run={run} text={whole.slice(from, start)} match={false} />)
      pieces.push(<Piece key={start} run={run} text={whole.slice(start, stop)} match />)
      from = stop
    }
    if (end > from) pieces.push(<Piece key={from} run={run} text={whole.slice(from, end)} match={false} />)
    at = end
  }
  return pieces
}

function find(whole: string, search: string, exactCase: boolean): number[] {
  const fold = (text: string) => (exactCase ? text : text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()))
  const text = fold(whole)
  const wanted = fold(search)
  const places: number[] = []
  for (let at = text.indexOf(wanted); at >= 0 && places.length < 500; at = text.indexOf(wanted, at + wanted.length))
    places.push(at)
  return places
}

function Piece({ run, text, match }: { run: Run; text: string; match: boolean }) {
  const classes = [match && 'match', run.raw && 'raw', ...lookClasses(run.look)].filter(Boolean).join(' ')
  const style = lookStyle(run.look)
  if (run.link !== undefined) {
    return (
      <a href={run.link} target="_blank" rel="noopener noreferrer nofollow" className={classes} style={style}>
        {text}
      </a>
    )
  }
  if (classes === '' && style === undefined) return text
  return (
    <span className={classes} style={style}>
      {text}
    </span>
  )
}

function lookClasses(look: Look): string[] {
  const classes: string[] = []
  if (look.bold) classes.push('bold')
  if (look.dim) classes.push('dim')
  if (look.italic) classes.push('italic')
  if (look.underline) classes.push('underline')
  if (look.inverse) classes.push('inverse')
  if (typeof look.fg === 'number' && look.fg < 16) classes.push(`fg-${look.fg}`)
  if (typeof look.bg === 'number' && look.bg < 16) classes.push(`bg-${look.bg}`)
  return classes
}

function lookStyle(look: Look): CSSProperties | undefined {
  const colour = (value: number | string | undefined) =>
    typeof value === 'string' ? value : value !== undefined && value >= 16 ? tableColour(value) : undefined
  const color = colour(look.fg)
  const backgroundColor = colour(look.bg)
  if (color === undefined && backgroundColor === undefined) return undefined
  return { ...(color ? { color } : {}), ...(backgroundColor ? { backgroundColor } : {}) }
}

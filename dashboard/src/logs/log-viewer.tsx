// The log of one attempt: a window on bytes that may be far more than a page could hold.
import { useRouter, useSearch } from '@tanstack/react-router'
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react'
import { Button } from 'react-aria-components'
import { useShortcuts } from '../app/keyboard'
import { setPreferences, usePreferences } from '../app/preferences'
import type { Search } from '../app/search-params'
import { copyText } from '../design/clipboard'
import { Failure, Loading } from '../design/parts'
import { language, useT } from '../i18n/i18n'
import { useLiveState } from '../live/live'
import { bytes } from '../time/format'
import { plainText } from './ansi'
import type { Line, Stream } from './lines'
import { Lines, type LinesHandle } from './log-lines'
import { isIn, placeOf, type Place } from './place'
import { SearchBox } from './search-box'
import { mergedSource, rangeSource } from './source'
import { LogToolbar } from './toolbar'
import { LogWindow, type LogView } from './window'
import type { Match } from './search'
import './logs.css'

interface LogViewerProps {
  job: string
  attempt: number
  attempts: number[]
  /** Says why the attempt ended, below its last line. */
  ending: string | null
}

export type Shown = 'both' | Stream

function shownOf(value: unknown): Shown {
  return value === 'stdout' || value === 'stderr' ? value : 'both'
}

export function LogViewer({ job, attempt, attempts, ending }: LogViewerProps) {
  const t = useT()
  const router = useRouter()
  const search = useSearch({ strict: false })
  const shown = shownOf(search['stream'])
  const place = useMemo(() => placeOf(search['stream'], search['at'], search['to']), [search])
  const { logWrap, logTimes, zone } = usePreferences()
  const [text, setText] = useState('')
  const [exactCase, setExactCase] = useState(false)
  const [plain, setPlain] = useState(false)
  const [stick, setStick] = useState(place === null)
  const lines = useRef<LinesHandle>(null)
  const field = useRef<HTMLInputElement>(null)
  const paused = useLiveState() === 'paused'
  const [window, view] = useWindow(job, attempt, shown, place)
  useEffect(() => window.follow(stick && !paused), [window, stick, paused])

  const go = (change: Record<string, string | undefined>) =>
    void router.navigate({
      to: '.',
      search: (before: Search) => ({ ...before, ...change }),
      replace: true,
      resetScroll: false,
    })
  const toEnd = () => {
    setStick(true)
    if (place !== null) go({ at: undefined, to: undefined })
    else if (!view.atEnd) window.open('end')
    lines.current?.toEnd()
  }
  const toStart = () => {
    setStick(false)
    if (view.atStart) lines.current?.toStart()
    else window.open('start')
  }
  const jump = (match: Match) => {
    setStick(false)
    const line = view.lines.find((each) => each.stream === match.stream && each.offset === match.line_offset)
    if (line && shown !== 'both') lines.current?.show(line)
    else if (match.line_number)
      window.open(match.line_offset, { stream: match.stream, offset: match.line_offset, number: match.line_number })
    go({ stream: match.stream, at: `${match.line_offset}`, to: undefined })
  }
  const link = (line: Line, extend: boolean) => {
    const from = extend && place?.stream === line.stream ? Math.min(place.at, line.offset) : line.offset
    const to = extend && place?.stream === line.stream ? Math.max(place.at, line.offset) : line.offset
    go({ attempt: `${attempt}`, stream: line.stream, at: `${from}`, to: to > from ? `${to}` : undefined })
  }
  const chosen = place ? view.lines.filter((line) => isIn(line, place)) : []
  const move = (step: number) => {
    const next = attempts[attempts.indexOf(attempt) + step]
    if (next !== undefined) go({ attempt: `${next}`, at: undefined, to: undefined })
  }
  useShortcuts([
    { keys: 'f', label: 'keys.follow', run: () => (stick ? setStick(false) : toEnd()) },
    { keys: '[', label: 'keys.earlier_attempt', run: () => move(-1) },
    { keys: ']', label: 'keys.later_attempt', run: () => move(1) },
    { keys: 'w', label: 'keys.wrap', run: () => setPreferences({ logWrap: !logWrap }) },
    { keys: '/', label: 'keys.search_log', run: () => field.current?.focus() },
    { keys: 'Ctrl+F', label: 'keys.search_log', run: () => field.current?.focus() },
  ])
  const empty = view.sizes !== null && view.sizes.stdout + view.sizes.stderr === 0
  return (
    <section className="log" aria-label={t('log.label')}>
      <LogToolbar
        job={job}
        attempt={attempt}
        attempts={attempts}
        shown={shown}
        sizes={view.sizes}
        following={stick && !view.over}
        plain={plain}
        onAttempt={(number) => go({ attempt: `${number}`, at: undefined, to: undefined })}
        onShown={(stream) => go({ stream: stream === 'both' ? undefined : stream, at: undefined, to: undefined })}
        onFollow={() => (stick ? setStick(false) : toEnd())}
        onPlain={() => setPlain(!plain)}
        onStart={toStart}
        onEnd={toEnd}
      />
      <SearchBox
        job={job}
        attempt={attempt}
        stream={shown === 'both' ? null : shown}
        field={field}
        text={text}
        exactCase={exactCase}
        onText={setText}
        onExactCase={setExactCase}
        onJump={jump}
      />
      {chosen.length > 0 && (
        <div className="log-chosen">
          <span>{t('log.chosen', { count: chosen.length })}</span>
          <Button
            className="button"
            onPress={() => void copyText(chosen.map((line) => plainText(line.bytes)).join('\n'))}
          >
            {t('log.copy_lines')}
          </Button>
          <Button className="button" onPress={() => void copyText(document.location.href)}>
            {t('log.copy_link')}
          </Button>
          <Button className="button quiet" onPress={() => go({ at: undefined, to: undefined })}>
            {t('log.unchoose')}
          </Button>
        </div>
      )}
      {view.error ? <Failure error={view.error} retry={() => window.open(place?.at ?? 'end')} /> : null}
      {view.opening ? (
        <Loading />
      ) : empty && view.lines.length === 0 ? (
        <p className="log-empty muted">{view.over ? t('log.nothing') : t('log.nothing_yet')}</p>
      ) : plain ? (
        <pre className="log-plain" tabIndex={0} aria-label={t('log.label')}>
          {view.lines
            .slice(-5_000)
            .map((line) => plainText(line.bytes))
            .join('\n')}
        </pre>
      ) : (
        <Lines
          key={view.generation}
          ref={lines}
          view={view}
          wrap={logWrap}
          times={shown === 'both' ? logTimes : 'none'}
          zone={zone}
          showStream={shown === 'both'}
          search={text}
          exactCase={exactCase}
          place={place}
          stick={stick}
          onStick={setStick}
          onEarlier={() => window.earlier()}
          onLater={() => window.later()}
          onLink={link}
          ending={view.over ? ending : null}
        />
      )}
      <Foot view={view} shown={shown} />
    </section>
  )
}

/** One window for what is shown; opened anew when that is another, at the place of the address. */
function useWindow(job: string, attempt: number, shown: Shown, place: Place | null) {
  const first = useRef(place)
  useEffect(() => {
    first.current = place
  })
  const window = useMemo(() => makeWindow(job, attempt, shown), [job, attempt, shown])
  useEffect(() => {
    window.open(first.current?.at ?? 'end')
    return () => window.close()
  }, [window])
  const view = useSyncExternalStore<LogView>(
    useMemo(() => (watcher: () => void) => window.watch(watcher), [window]),
    () => window.view,
  )
  // A link to a byte that is not loaded: opened there.
  const at = place?.at
  useEffect(() => {
    if (at === undefined || window.view.opening || window.view.lines.length === 0) return
    if (!window.view.lines.some((line) => at >= line.offset && at <= line.offset + line.bytes.length)) window.open(at)
  }, [window, at])
  return [window, view] as const
}

type AnyWindow = Pick<LogWindow<unknown>, 'view' | 'watch' | 'open' | 'close' | 'follow' | 'earlier' | 'later'>

function makeWindow(job: string, attempt: number, shown: Shown): AnyWindow {
  return shown === 'both'
    ? new LogWindow(mergedSource(job, attempt), job, attempt)
    : new LogWindow(rangeSource(job, attempt, shown), job, attempt)
}

function Foot({ view, shown }: { view: LogView; shown: Shown }) {
  const t = useT()
  const { sizes, lines } = view
  if (sizes === null || lines.length === 0) return null
  const size = shown === 'both' ? sizes.stdout + sizes.stderr : sizes[shown]
  const first = lines[0]
  const last = lines.at(-1)
  if (shown === 'both' || first === undefined || last === undefined) {
    return <p className="log-foot muted">{t('log.size', { size: bytes(size, language()) })}</p>
  }
  const from = bytes(first.offset, language())
  const to = bytes(last.offset + last.bytes.length, language())
  return <p className="log-foot muted">{t('log.window', { from, to, size: bytes(size, language()) })}</p>
}

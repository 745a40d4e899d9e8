// The rows in sight. Keeps its place when rows come above, and stays at the end while it follows.
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState, type Ref } from 'react'
import { useT } from '../i18n/i18n'
import type { Zone } from '../time/format'
import type { Line } from './lines'
import { isIn, type Place } from './place'
import { Row, type Times } from './row'
import type { LogView } from './window'

export interface LinesHandle {
  toStart: () => void
  toEnd: () => void
  show: (line: Line) => void
}

interface LinesProps {
  ref: Ref<LinesHandle>
  view: LogView
  wrap: boolean
  times: Times
  zone: Zone
  showStream: boolean
  search: string
  exactCase: boolean
  place: Place | null
  stick: boolean
  onStick: (stick: boolean) => void
  onEarlier: () => void
  onLater: () => void
  onLink: (line: Line, extend: boolean) => void
  ending: string | null
}

const ROW = 20
const NEAR = 60

export function Lines(props: LinesProps) {
  const { ref, view, wrap, place, stick, onStick, onEarlier, onLater } = props
  const t = useT()
  const scroller = useRef<HTMLDivElement>(null)
  const { lines } = view
  const [first] = useState(() => lines.findIndex((line) => isIn(line, place)))
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    getItemKey: (index) => lines[index]?.key ?? index,
    overscan: 20,
    // Where the first look falls: on the place of the address, at the end that is followed, or at the start.
    initialOffset: () => (first >= 0 ? Math.max(0, first * ROW - 200) : stick ? lines.length * ROW : 0),
    paddingStart: 6,
    paddingEnd: 6,
  })
  useEffect(() => virtualizer.measure(), [virtualizer, wrap])

  // Rows that came above push what is in sight down: go down with it.
  const top = useRef<string | undefined>(undefined)
  useLayoutEffect(() => {
    const added = top.current === undefined ? 0 : lines.findIndex((line) => line.key === top.current)
    top.current = lines[0]?.key
    const element = scroller.current
    if (added > 0 && element) element.scrollTop += added * ROW
  }, [lines])
  useLayoutEffect(() => {
    if (stick && lines.length > 0) virtualizer.scrollToIndex(lines.length - 1, { align: 'end' })
  }, [virtualizer, lines, stick])

  const inSight = virtualizer.getVirtualItems()
  const firstIndex = inSight[0]?.index ?? 0
  const lastIndex = inSight.at(-1)?.index ?? 0

  // The place of the address, once its line is there; nothing else is loaded before it was in sight.
  const placed = useRef<number | null>(null)
  const at = place?.at ?? null
  useEffect(() => {
    if (at === null || placed.current === at) return
    const index = lines.findIndex((line) => isIn(line, place))
    if (index < 0) return
    if (index >= firstIndex && index <= lastIndex) placed.current = at
    else virtualizer.scrollToIndex(index, { align: 'center' })
  }, [virtualizer, lines, at, place, firstIndex, lastIndex])

  useImperativeHandle(ref, () => ({
    toStart: () => virtualizer.scrollToIndex(0),
    toEnd: () => virtualizer.scrollToIndex(lines.length - 1, { align: 'end' }),
    show: (line) => {
      const index = lines.findIndex((each) => each.key === line.key)
      if (index >= 0) virtualizer.scrollToIndex(index, { align: 'center' })
    },
  }))

  useEffect(() => {
    if (at !== null && placed.current !== at && lines.some((line) => isIn(line, place))) return
    if (firstIndex < NEAR && !stick) onEarlier()
    if (lastIndex > lines.length - NEAR) onLater()
  }, [firstIndex, lastIndex, lines, stick, at, place, onEarlier, onLater])

  const zero = Date.parse(lines.find((line) => line.time !== null)?.time ?? '') || 0
  const onScroll = () => {
    const element = scroller.current
    if (!element) return
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < ROW
    if (stick && !atEnd && wheel.current) onStick(false)
    if (!stick && atEnd && view.atEnd && place === null) onStick(true)
    wheel.current = false
  }
  /** Only the reader's own scrolling leaves the end, not rows that were measured. */
  const wheel = useRef(false)
  const byHand = () => {
    wheel.current = true
  }
  return (
    <div
      ref={scroller}
      className={wrap ? 'log-scroller wrapped' : 'log-scroller'}
      role="region"
      aria-label={t('log.lines')}
      tabIndex={0}
      onScroll={onScroll}
      onWheel={byHand}
      onTouchMove={byHand}
      onPointerDown={byHand}
      onKeyDown={byHand}
    >
      <div className="log-rows" style={{ height: virtualizer.getTotalSize() }}>
        {inSight.map((item) => {
          const line = lines[item.index]
          if (line === undefined) return null
          return (
            <div
              key={item.key}
              data-index={item.index}
              ref={virtualizer.measureElement}
              className="log-slot"
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <Row
                line={line}
                times={props.times}
                zone={props.zone}
                zero={zero}
                showStream={props.showStream}
                search={props.search}
                exactCase={props.exactCase}
                marked={isIn(line, place)}
                linkLabel={t('log.link')}
                onLink={props.onLink}
              />
            </div>
          )
        })}
      </div>
      {view.atEnd && props.ending !== null && <p className="log-ending">{props.ending}</p>}
    </div>
  )
}

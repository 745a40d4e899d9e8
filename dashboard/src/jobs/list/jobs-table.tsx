// The table: only the rows in sight are in the document; arrows, j and k walk through it.
import { useTable } from '@tanstack/react-table'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, type KeyboardEvent, type RefObject } from 'react'
import { usePreferences } from '../../app/preferences'
import { useT } from '../../i18n/i18n'
import { columnInfo, columns, Compact, features, type ColumnId } from './columns'
import type { JobRow } from './rows'
import './jobs-table.css'

export interface TableHandle {
  move: (step: number) => void
  /** The row that has the focus, or null. */
  current: () => JobRow | null
}

interface JobsTableProps {
  rows: JobRow[]
  selected: ReadonlySet<string>
  toggle: (id: string) => void
  more: (() => void) | null
  narrow: boolean
  handle: RefObject<TableHandle | null>
  onHold: (held: boolean) => void
}

const rowId = (row: JobRow) => row.id

export function JobsTable({ rows, selected, toggle, more, narrow, handle, onHold }: JobsTableProps) {
  const t = useT()
  const { hiddenColumns, density } = usePreferences()
  const scroller = useRef<HTMLDivElement>(null)
  const columnVisibility = Object.fromEntries(hiddenColumns.map((id) => [id, false]))
  const table = useTable({ features, columns, data: rows, getRowId: rowId, state: { columnVisibility } })
  const tableRows = table.getRowModel().rows
  const height = narrow ? 54 : density === 'compact' ? 31 : 39
  const virtualizer = useVirtualizer({
    count: tableRows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    getItemKey: (index) => tableRows[index]?.id ?? index,
    overscan: 12,
  })
  useEffect(() => virtualizer.measure(), [virtualizer, height])
  const inSight = virtualizer.getVirtualItems()
  const lastInSight = inSight.at(-1)?.index ?? 0
  useEffect(() => {
    if (more && lastInSight >= rows.length - 30) more()
  }, [more, lastInSight, rows.length])

  const focusRow = (index: number) => {
    const bounded = Math.max(0, Math.min(rows.length - 1, index))
    virtualizer.scrollToIndex(bounded)
    // The row is in the document after the virtualizer has drawn it.
    requestAnimationFrame(() =>
      scroller.current?.querySelector<HTMLElement>(`tr[data-index="${bounded}"] .job-link`)?.focus(),
    )
  }
  const focusedIndex = () => {
    const row = document.activeElement?.closest('tr[data-index]')
    return row instanceof HTMLElement && scroller.current?.contains(row) ? Number(row.dataset['index']) : -1
  }
  useEffect(() => {
    handle.current = {
      move: (step) => focusRow(focusedIndex() + step),
      current: () => rows[focusedIndex()] ?? null,
    }
  })
  /** Whoever points at a row, has one in focus or has scrolled away from the top is not to lose the place. */
  const hold = () => {
    // After the event: only then is the focus where it goes.
    requestAnimationFrame(() => {
      const element = scroller.current
      if (element) onHold(element.matches(':hover') || focusedIndex() >= 0 || element.scrollTop > 0)
    })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 }
    const step = steps[event.key]
    if (step === undefined || focusedIndex() < 0) return
    event.preventDefault()
    focusRow(focusedIndex() + step)
  }
  const visible = table.getVisibleLeafColumns().map((column) => column.id as ColumnId)
  const before = inSight[0]?.start ?? 0
  const after = virtualizer.getTotalSize() - (inSight.at(-1)?.end ?? 0)
  const span = (narrow ? 1 : visible.length) + 1
  return (
    <div
      ref={scroller}
      className={narrow ? 'jobs-scroller narrow' : 'jobs-scroller'}
      onKeyDown={onKeyDown}
      onPointerEnter={hold}
      onPointerLeave={hold}
      onFocus={hold}
      onBlur={hold}
      onScroll={hold}
    >
      <table
        className={`jobs-table ${density}`}
        aria-rowcount={more ? -1 : rows.length + 1}
        aria-label={t('jobs.table')}
      >
        <colgroup>
          <col className="select-column" />
          {narrow ? (
            <col />
          ) : (
            visible.map((id) => (
              <col key={id} style={columnInfo[id].width > 0 ? { width: `${columnInfo[id].width}rem` } : {}} />
            ))
          )}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">
              <span className="hidden-text">{t('jobs.select')}</span>
            </th>
            {narrow ? (
              <th scope="col">{t('column.name')}</th>
            ) : (
              visible.map((id) => (
                <th key={id} scope="col" className="cut">
                  {t(columnInfo[id].label)}
                </th>
              ))
            )}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <Spacer height={before} span={span} />}
          {inSight.map((item) => {
            const row = tableRows[item.index]
            if (row === undefined) return null
            const job = row.original
            return (
              <tr
                key={row.id}
                data-index={item.index}
                aria-rowindex={item.index + 2}
                className={selected.has(job.id) ? 'chosen' : undefined}
                style={{ height }}
              >
                <td>
                  <label className="check">
                    <input
                      type="checkbox"
                      checked={selected.has(job.id)}
                      onChange={() => toggle(job.id)}
                      aria-label={t('jobs.select_one', { name: job.name })}
                      tabIndex={-1}
                    />
                  </label>
                </td>
                {narrow ? (
                  <td>
                    <Compact row={job} />
                  </td>
                ) : (
                  row.getVisibleCells().map((cell) => (
                    <td key={cell.id} className="cut">
                      <table.FlexRender cell={cell} />
                    </td>
                  ))
                )}
              </tr>
            )
          })}
          {after > 0 && <Spacer height={after} span={span} />}
        </tbody>
      </table>
    </div>
  )
}

function Spacer({ height, span }: { height: number; span: number }) {
  return (
    <tr aria-hidden="true">
      <td colSpan={span} style={{ height, padding: 0, border: 0 }} />
    </tr>
  )
}

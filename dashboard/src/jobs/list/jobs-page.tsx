// The list of jobs: filters in the address, carried out by the server.
import { useRouter, useSearch } from '@tanstack/react-router'
import { useMemo, useRef, useState } from 'react'
import { Button, Dialog, DialogTrigger, Checkbox, CheckboxGroup, Popover } from 'react-aria-components'
import { useShortcuts } from '../../app/keyboard'
import { useNarrow } from '../../app/narrow'
import { setPreferences, usePreferences } from '../../app/preferences'
import { writeSearch } from '../../app/search-params'
import { Empty } from '../../design/empty'
import { Failure, Loading } from '../../design/parts'
import { useTitle } from '../../app/title'
import { useT } from '../../i18n/i18n'
import { useStream } from '../../live/live'
import { FilterBar } from '../filter/filter-bar'
import { filterOnly, searchOf, tokensOf, type Token } from '../filter/grammar'
import { ViewButton } from '../views/view-button'
import { BulkBar } from './bulk'
import { columnIds, columnInfo, fixedColumns } from './columns'
import { StatusCounts } from './counts'
import { JobsTable, type TableHandle } from './jobs-table'
import { useRows } from './rows'

export default function JobsPage() {
  const t = useT()
  useTitle(t('jobs.title'))
  const router = useRouter()
  const search = useSearch({ strict: false })
  const text = writeSearch(filterOnly(search))
  // The same filters are the same object, so that nothing is read again for another order.
  // oxlint-disable-next-line react/exhaustive-deps
  const filter = useMemo(() => filterOnly(search), [text])
  const [held, setHeld] = useState(false)
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const field = useRef<HTMLInputElement>(null)
  const table = useRef<TableHandle>(null)
  const narrow = useNarrow()
  useStream(null)
  const rows = useRows(filter, held || selected.size > 0)
  const setTokens = (tokens: Token[]) => {
    setSelected(new Set())
    void router.navigate({ to: '/jobs', search: searchOf(tokens) })
  }
  const toggle = (id: string) => {
    const next = new Set(selected)
    if (!next.delete(id)) next.add(id)
    setSelected(next)
  }
  useShortcuts([
    { keys: '/', label: 'keys.filter', run: () => field.current?.focus() },
    { keys: 'j', label: 'keys.down', run: () => table.current?.move(1) },
    { keys: 'k', label: 'keys.up', run: () => table.current?.move(-1) },
    { keys: 'x', label: 'keys.select', run: () => toggleCurrent() },
  ])
  const toggleCurrent = () => {
    const row = table.current?.current()
    if (row) toggle(row.id)
  }
  const chosen = rows.items.filter((row) => selected.has(row.id))
  return (
    <div className="page jobs-page">
      <div className="page-head">
        <h1>{t('jobs.title')}</h1>
        <div className="row">
          <ViewButton filter={filter} />
          <ColumnButton />
        </div>
      </div>
      <div className="row">
        <FilterBar tokens={tokensOf(filter)} onChange={setTokens} field={field} />
      </div>
      <div className="row spread wrap">
        <StatusCounts filter={filter} />
        <span role="status">
          {rows.waiting > 0 && (
            <Button className="button primary new-pill" onPress={rows.apply}>
              {t('jobs.changed', { count: rows.waiting })}
            </Button>
          )}
        </span>
      </div>
      {rows.error ? <Failure error={rows.error} /> : null}
      {rows.items.length > 0 ? (
        <JobsTable
          rows={rows.items}
          selected={selected}
          toggle={toggle}
          more={rows.more}
          narrow={narrow}
          handle={table}
          onHold={setHeld}
        />
      ) : rows.loading ? (
        <Loading />
      ) : (
        !rows.error && <NoJobs filtered={text !== ''} more={rows.more} />
      )}
      <BulkBar chosen={chosen} filter={filter} clear={() => setSelected(new Set())} />
    </div>
  )
}

function NoJobs({ filtered, more }: { filtered: boolean; more: (() => void) | null }) {
  const t = useT()
  if (!filtered) return <Empty />
  return (
    <div className="stack">
      <p className="muted">{more ? t('jobs.none_yet') : t('jobs.none_match')}</p>
      {more && (
        <div>
          <Button className="button" onPress={more}>
            {t('jobs.look_further')}
          </Button>
        </div>
      )}
    </div>
  )
}

function ColumnButton() {
  const t = useT()
  const { hiddenColumns, density } = usePreferences()
  const shown = columnIds.filter((id) => !hiddenColumns.includes(id))
  return (
    <DialogTrigger>
      <Button className="button wide-only">{t('jobs.columns')}</Button>
      <Popover className="popover">
        <Dialog aria-label={t('jobs.columns')} className="column-dialog">
          <CheckboxGroup
            aria-label={t('jobs.columns')}
            value={shown}
            onChange={(ids) => setPreferences({ hiddenColumns: columnIds.filter((id) => !ids.includes(id)) })}
            className="column-list"
          >
            {columnIds.map((id) => (
              <Checkbox key={id} value={id} isDisabled={fixedColumns.includes(id)} className="column-choice">
                <span className="box" aria-hidden="true" />
                {t(columnInfo[id].label)}
              </Checkbox>
            ))}
          </CheckboxGroup>
          <Button
            className="button"
            onPress={() => setPreferences({ density: density === 'compact' ? 'comfortable' : 'compact' })}
          >
            {density === 'compact' ? t('jobs.comfortable') : t('jobs.compact')}
          </Button>
        </Dialog>
      </Popover>
    </DialogTrigger>
  )
}

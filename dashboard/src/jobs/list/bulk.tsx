// Cancel or retry many: the chosen rows, or all that match, counted before anything happens.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button, ProgressBar } from 'react-aria-components'
import { api, data } from '../../api/client'
import type { Schemas } from '../../api/client'
import { writeSearch, type Search } from '../../app/search-params'
import { Confirm, Failure, FailureText, Loading } from '../../design/parts'
import { useT, type Key } from '../../i18n/i18n'
import { act, canDo } from '../actions'
import { boundedCount } from './counts'
import type { JobRow } from './rows'

type Action = 'cancel' | 'retry'
interface BulkBarProps {
  chosen: JobRow[]
  filter: Search
  clear: () => void
}

export function BulkBar({ chosen, filter, clear }: BulkBarProps) {
  const t = useT()
  const [asked, setAsked] = useState<{ action: Action; all: boolean } | null>(null)
  const [running, setRunning] = useState<string | null>(null)
  const narrowed = writeSearch(filter) !== ''
  const possible = (action: Action) => chosen.filter((row) => canDo(action, row.status, row.kind))
  if (running !== null) return <Progress id={running} close={() => setRunning(null)} />
  if (chosen.length === 0 && !narrowed) return null
  return (
    <div className="bulk-bar" role="region" aria-label={t('bulk.label')}>
      {chosen.length > 0 ? (
        <>
          <strong>{t('bulk.chosen', { count: chosen.length })}</strong>
          {(['cancel', 'retry'] as const).map((action) => (
            <Button
              key={action}
              className="button"
              isDisabled={possible(action).length === 0}
              onPress={() => setAsked({ action, all: false })}
            >
              {t(`bulk.${action}_chosen`, { count: possible(action).length })}
            </Button>
          ))}
          <Button className="button quiet" onPress={clear}>
            {t('bulk.clear')}
          </Button>
        </>
      ) : (
        <>
          <span className="muted">{t('bulk.all')}</span>
          {(['cancel', 'retry'] as const).map((action) => (
            <Button key={action} className="button" onPress={() => setAsked({ action, all: true })}>
              {t(`bulk.${action}_all`)}
            </Button>
          ))}
        </>
      )}
      {asked && !asked.all && (
        <ChosenDialog action={asked.action} rows={possible(asked.action)} close={() => setAsked(null)} done={clear} />
      )}
      {asked?.all && (
        <AllDialog action={asked.action} filter={filter} close={() => setAsked(null)} started={setRunning} />
      )}
    </div>
  )
}

function ChosenDialog({
  action,
  rows,
  close,
  done,
}: {
  action: Action
  rows: JobRow[]
  close: () => void
  done: () => void
}) {
  const t = useT()
  const client = useQueryClient()
  const work = useMutation({
    mutationFn: async () => {
      for (const row of rows) {
        // One after the other: the first refusal stops it, and what was done is done.
        // oxlint-disable-next-line no-await-in-loop
        await act(action, row.id, row.attempt)
      }
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['jobs', 'head'] }),
    onSuccess: () => {
      close()
      done()
    },
  })
  return (
    <Confirm
      title={t(`bulk.${action}_question`, { count: String(rows.length) })}
      action={t(`bulk.${action}`)}
      danger={action === 'cancel'}
      busy={work.isPending}
      error={work.error}
      onConfirm={() => work.mutate()}
      onClose={close}
    >
      <ul className="break">
        {rows.slice(0, 8).map((row) => (
          <li key={row.id}>{row.name}</li>
        ))}
      </ul>
      {rows.length > 8 && <p className="muted">{t('bulk.more', { count: rows.length - 8 })}</p>}
    </Confirm>
  )
}

interface AllDialogProps {
  action: Action
  filter: Search
  close: () => void
  started: (id: string) => void
}

function AllDialog({ action, filter, close, started }: AllDialogProps) {
  const t = useT()
  const text = writeSearch(filter).slice(1)
  const [key] = useState(() => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`)
  const preview = useQuery({
    queryKey: ['bulk', 'preview', action, text],
    queryFn: () =>
      data(api.POST('/api/v1/bulk', { body: { filter: text, action, dry_run: true } })) as Promise<
        Schemas['BulkPreview']
      >,
    gcTime: 0,
    retry: false,
  })
  const start = useMutation({
    mutationFn: () =>
      data(api.POST('/api/v1/bulk', { body: { filter: text, action, idempotency_key: key } })) as Promise<
        Schemas['Bulk']
      >,
    onSuccess: (bulk) => {
      started(bulk.id)
      close()
    },
  })
  const count = preview.data ? boundedCount(preview.data.matching, preview.data.capped || !preview.data.complete) : '…'
  return (
    <Confirm
      title={t(`bulk.${action}_question`, { count })}
      action={t(`bulk.${action}`)}
      danger={action === 'cancel'}
      busy={start.isPending || !preview.data || preview.data.matching === 0}
      error={start.error ?? preview.error}
      onConfirm={() => start.mutate()}
      onClose={close}
    >
      {preview.isPending && <Loading />}
      <pre className="code">{decodeURIComponent(text.replaceAll('+', ' '))}</pre>
      <p className="muted">{t('bulk.explain')}</p>
    </Confirm>
  )
}

function Progress({ id, close }: { id: string; close: () => void }) {
  const t = useT()
  const bulk = useQuery({
    queryKey: ['bulk', id],
    queryFn: () => data(api.GET('/api/v1/bulk/{id}', { params: { path: { id } } })),
    refetchInterval: (query) => (query.state.data?.status === 'running' ? 1_000 : false),
  })
  const stop = useMutation({
    mutationFn: () => data(api.POST('/api/v1/bulk/{id}/stop', { params: { path: { id } } })),
    onSuccess: () => bulk.refetch(),
  })
  return (
    <div className="bulk-bar" role="region" aria-label={t('bulk.label')}>
      {bulk.error ? <Failure error={bulk.error} /> : null}
      {bulk.data?.status === 'running' && <ProgressBar isIndeterminate aria-label={t('bulk.running')} />}
      <span role="status">
        {bulk.data
          ? t(`bulk.is_${bulk.data.status}` as Key, { changed: bulk.data.changed, unchanged: bulk.data.unchanged })
          : t('bulk.running')}
      </span>
      {bulk.data?.status === 'running' ? (
        <Button className="button" onPress={() => stop.mutate()}>
          {t('bulk.stop')}
        </Button>
      ) : (
        <Button className="button" onPress={close}>
          {t('dialog.close')}
        </Button>
      )}
      {stop.error && <FailureText error={stop.error} />}
    </div>
  )
}

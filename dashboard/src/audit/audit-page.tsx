// Who did what, when, from where, on what; filtered by the server.
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useRouter, useSearch } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { Button, Input, Label, TextField } from 'react-aria-components'
import { api, data } from '../api/client'
import type { Schemas } from '../api/client'
import { useShortcuts } from '../app/keyboard'
import { Failure, Loading, Panel } from '../design/parts'
import { useTitle } from '../app/title'
import { useT, type Key } from '../i18n/i18n'
import { Time } from '../time/time'
import { parseDuration } from '../time/format'
import './audit.css'

type Entry = Schemas['Audit']
const filters = ['who', 'action', 'target', 'address', 'since'] as const
type Filter = (typeof filters)[number]

export default function AuditPage() {
  const t = useT()
  useTitle(t('nav.audit'))
  const router = useRouter()
  const search = useSearch({ strict: false })
  const first = useRef<HTMLInputElement>(null)
  useShortcuts([{ keys: '/', label: 'keys.filter', run: () => first.current?.focus() }])
  const wanted = Object.fromEntries(
    filters.flatMap((name) => (typeof search[name] === 'string' ? [[name, search[name]]] : [])),
  )
  const pages = useInfiniteQuery({
    queryKey: ['audit', wanted],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      data(
        api.GET('/api/v1/audit', {
          params: { query: { ...server(wanted), limit: 100, ...(pageParam ? { cursor: pageParam } : {}) } },
          signal,
        }),
      ),
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  })
  const items = pages.data?.pages.flatMap((page) => page.items) ?? []
  const { hasNextPage, isFetching, fetchNextPage } = pages
  useEffect(() => {
    // A page scans a bounded part and may find nothing in it.
    if (items.length === 0 && hasNextPage && !isFetching) void fetchNextPage()
  }, [items.length, hasNextPage, isFetching, fetchNextPage])
  const set = (name: Filter, value: string) =>
    void router.navigate({ to: '.', search: { ...search, [name]: value }, replace: true })
  return (
    <div className="page stack">
      <div className="page-head">
        <h1>{t('nav.audit')}</h1>
        <p className="small muted">{t('audit.kept')}</p>
      </div>
      <form className="audit-filters" onSubmit={(event) => event.preventDefault()}>
        {filters.map((name, index) => (
          <FilterField
            key={name}
            label={t(`audit.${name}` as Key)}
            hint={{ who: 'ada', action: 'job.', target: '01a2…', address: '10.0.0.7', since: '24h' }[name]}
            value={typeof search[name] === 'string' ? search[name] : ''}
            onChange={(value) => set(name, value)}
            field={index === 0 ? first : undefined}
          />
        ))}
      </form>
      {pages.error ? <Failure error={pages.error} /> : null}
      <Panel title={t('audit.entries')} flush>
        {pages.isPending ? (
          <Loading />
        ) : items.length === 0 ? (
          <p className="nothing muted">{t('audit.none')}</p>
        ) : (
          <div className="scroll-x">
            <table className="data">
              <thead>
                <tr>
                  <th scope="col">{t('column.time')}</th>
                  <th scope="col">{t('audit.who')}</th>
                  <th scope="col">{t('audit.action')}</th>
                  <th scope="col">{t('audit.target')}</th>
                  <th scope="col">{t('audit.detail')}</th>
                  <th scope="col">{t('audit.address')}</th>
                </tr>
              </thead>
              <tbody>
                {items.map((entry) => (
                  <tr key={entry.number}>
                    <td>
                      <Time value={entry.time} />
                    </td>
                    <td className="break">{entry.who}</td>
                    <td className="mono">{entry.action}</td>
                    <td className="break mono">
                      <Target entry={entry} />
                    </td>
                    <td className="break">{entry.detail}</td>
                    <td className="mono">{entry.address}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Panel>
      {pages.hasNextPage && (
        <div>
          <Button className="button" isDisabled={isFetching} onPress={() => void fetchNextPage()}>
            {t('audit.older')}
          </Button>
        </div>
      )}
    </div>
  )
}

/** "Since" may be an age, which counts from now. */
function server(wanted: Record<string, string>): Record<string, string> {
  const age = parseDuration(wanted['since'] ?? '')
  return age === null ? wanted : { ...wanted, since: new Date(Date.now() - age).toISOString() }
}

function Target({ entry }: { entry: Entry }) {
  const isId = /^[0-9a-f-]{36}$/.test(entry.target)
  if (isId && entry.action.startsWith('job.')) {
    return (
      <Link to="/jobs/$id" params={{ id: entry.target }}>
        {entry.target}
      </Link>
    )
  }
  if (isId && entry.action.startsWith('node.')) {
    return (
      <Link to="/nodes/$id" params={{ id: entry.target }}>
        {entry.target}
      </Link>
    )
  }
  return entry.target
}

interface FilterFieldProps {
  label: string
  hint: string
  value: string
  onChange: (value: string) => void
  field: React.RefObject<HTMLInputElement | null> | undefined
}

function FilterField({ label, hint, value, onChange, field }: FilterFieldProps) {
  const [typed, setTyped] = useState(value)
  const latest = useRef(onChange)
  useEffect(() => {
    latest.current = onChange
  })
  useEffect(() => {
    if (typed === value) return
    const timer = setTimeout(() => latest.current(typed.trim()), 400)
    return () => clearTimeout(timer)
  }, [typed, value])
  return (
    <TextField className="field" value={typed} onChange={setTyped}>
      <Label>{label}</Label>
      <Input ref={field ?? null} placeholder={hint} autoComplete="off" />
    </TextField>
  )
}

// A new job: a form or an editor for one and the same spec, checked by the server while it is written.
import { useMutation, useQuery } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useState } from 'react'
import { Button, Tab, TabList, TabPanel, Tabs } from 'react-aria-components'
import { api, baseUrl, CallError, data } from '../api/client'
import type { Schemas } from '../api/client'
import { Command, Failure, FailureText, Loading, Panel } from '../design/parts'
import { useTitle } from '../app/title'
import { useT } from '../i18n/i18n'
import { curlLine, specOf, submitLine, type Spec } from '../jobs/job/command-line'
import { jobQuery } from '../jobs/job/queries'
import { useWhyText } from '../jobs/why-text'
import { SpecForm } from './form'
import './submit.css'
import '../jobs/job/job.css'

const Editor = lazy(() => import('./editor'))

export default function SubmitPage() {
  const t = useT()
  useTitle(t('submit.title'))
  const search = useSearch({ strict: false })
  const from = typeof search['from'] === 'string' ? search['from'] : null
  const model = useQuery({ ...jobQuery(from ?? ''), enabled: from !== null })
  if (from !== null && !model.data) {
    return <div className="page">{model.error ? <Failure error={model.error} /> : <Loading />}</div>
  }
  return (
    <div className="page stack">
      <h1>{model.data ? t('submit.again', { name: model.data.name }) : t('submit.title')}</h1>
      <Draft key={from} start={model.data ? specOf(model.data) : { command: [] }} />
    </div>
  )
}

const CHECK_MS = 500

function Draft({ start }: { start: Spec }) {
  const t = useT()
  const router = useRouter()
  const [spec, setSpec] = useState(start)
  const [text, setText] = useState(() => JSON.stringify(start, null, 2))
  const [mode, setMode] = useState('form')
  const [wrong, setWrong] = useState<string | null>(null)
  const settled = useSettled(spec, CHECK_MS)
  const isEmpty = (settled.command ?? []).length === 0 && !settled.binary_url
  const check = useQuery({
    queryKey: ['check', settled],
    queryFn: ({ signal }) => data(api.POST('/api/v1/jobs/check', { body: settled, signal })),
    enabled: !isEmpty && wrong === null,
    retry: false,
    placeholderData: (earlier) => earlier,
  })
  const send = useMutation({
    mutationFn: () => data(api.POST('/api/v1/jobs', { params: {}, body: spec })),
    onSuccess: (job) => router.navigate({ to: '/jobs/$id', params: { id: job.id } }),
  })
  const fill = (next: Spec) => {
    setSpec(next)
    setText(JSON.stringify(next, null, 2))
    setWrong(null)
  }
  const write = (next: string) => {
    setText(next)
    try {
      const value: unknown = JSON.parse(next)
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        throw new SyntaxError(t('submit.no_object'))
      setSpec(value as Spec)
      setWrong(null)
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error))
    }
  }
  const faults = check.error instanceof CallError ? check.error.faults : []
  return (
    <div className="submit">
      <Tabs className="panel" selectedKey={mode} onSelectionChange={(key) => setMode(String(key))}>
        <TabList aria-label={t('submit.ways')} className="tab-list">
          <Tab id="form" className="tab">
            {t('submit.form')}
          </Tab>
          <Tab id="editor" className="tab">
            {t('submit.editor')}
          </Tab>
        </TabList>
        <TabPanel id="form" className="tab-panel">
          <SpecForm spec={spec} onChange={fill} onWrong={setWrong} faults={faults} />
        </TabPanel>
        <TabPanel id="editor" className="tab-panel flush">
          <Suspense fallback={<Loading />}>
            <Editor text={text} onChange={write} />
          </Suspense>
        </TabPanel>
      </Tabs>
      <div className="stack">
        <Panel title={t('submit.check')}>
          <div className="stack" aria-live="polite">
            {wrong !== null ? (
              <p className="notice error">{wrong}</p>
            ) : isEmpty ? (
              <p className="muted">{t('submit.empty')}</p>
            ) : check.error ? (
              <div className="notice error">
                <FailureText error={check.error} />
              </div>
            ) : check.data ? (
              <Answer check={check.data} />
            ) : (
              <Loading />
            )}
            {send.error && (
              <div className="notice error" role="alert">
                <FailureText error={send.error} />
              </div>
            )}
            <div>
              <Button
                className="button primary"
                isDisabled={send.isPending || wrong !== null || isEmpty || check.error !== null}
                onPress={() => send.mutate()}
              >
                {t('submit.send')}
              </Button>
            </div>
          </div>
        </Panel>
        {wrong === null && !isEmpty && (
          <Panel title={t('submit.lines')}>
            <div className="stack">
              <Command text={submitLine(spec)} />
              <Command text={curlLine(spec, baseUrl)} />
            </div>
          </Panel>
        )}
      </div>
    </div>
  )
}

function Answer({ check }: { check: Schemas['JobCheck'] }) {
  const t = useT()
  const told = useWhyText()(check.why)
  const never = check.why.nodes.length > 0 && check.why.nodes.every((node) => !node.fits && node.lasting)
  const now = check.why.nodes.filter((node) => node.fits).length
  return (
    <>
      <p>{t('submit.valid', { owner: check.owner_id })}</p>
      {check.warnings.map((warning) => (
        <p key={warning} className="notice warning">
          {warning}
        </p>
      ))}
      <p className={never ? 'notice warning' : 'muted'}>{now > 0 ? t('submit.fits', { count: now }) : told.summary}</p>
      {told.remedy !== '' && now === 0 && <p className="muted">{told.remedy}</p>}
    </>
  )
}

/** The value once it has not changed for so long. */
function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms)
    return () => clearTimeout(timer)
  }, [value, ms])
  return settled
}

// One job: what is going on with it, where its time went, what it said.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams, useRouter, useSearch } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { Button, Tab, TabList, TabPanel, Tabs } from 'react-aria-components'
import type { Schemas } from '../../api/client'
import { useTitle } from '../../app/title'
import { useShortcuts } from '../../app/keyboard'
import type { Search } from '../../app/search-params'
import { Confirm, Copy, Failure, FailureText, Labels, Loading } from '../../design/parts'
import { endedStatuses, StatusWord, useReason } from '../../design/status'
import { useT, type Key } from '../../i18n/i18n'
import { useRefreshOnChange, useStream } from '../../live/live'
import { LogViewer } from '../../logs/log-viewer'
import { mayAct, meQuery } from '../../session/me'
import { useNow } from '../../time/time'
import { act, canDo, type JobAction } from '../actions'
import { ApiTab } from './api-tab'
import { ArtifactsTab } from './artifacts-tab'
import { EventsTab } from './events-tab'
import { attemptsQuery, eventsQuery, jobQuery } from './queries'
import { ResourcesTab } from './resources-tab'
import { ending, sentence } from './sentence'
import { SpecTab } from './spec-tab'
import { StateLine } from './state-line'
import { Timeline } from './timeline'
import { WhyPanel } from './why-panel'
import './job.css'

const tabs = ['log', 'events', 'resources', 'spec', 'artifacts', 'api'] as const

export default function JobPage() {
  const { id } = useParams({ strict: false }) as { id: string }
  useStream(id)
  const job = useQuery(jobQuery(id))
  const attempts = useQuery(attemptsQuery(id))
  const events = useQuery(eventsQuery(id))
  const keys = useMemo(() => [['job', id]], [id])
  useRefreshOnChange(keys, 400)
  if (job.error && !job.data) {
    return (
      <div className="page">
        <Failure error={job.error} />
      </div>
    )
  }
  if (!job.data || !attempts.data || !events.data) {
    return (
      <div className="page">
        {attempts.error || events.error ? <Failure error={attempts.error ?? events.error} /> : <Loading />}
      </div>
    )
  }
  return <JobView job={job.data} attempts={attempts.data.items} events={events.data.items} />
}

interface JobViewProps {
  job: Schemas['Job']
  attempts: Schemas['Attempt'][]
  events: Schemas['Event'][]
}

function JobView({ job, attempts, events }: JobViewProps) {
  const t = useT()
  const router = useRouter()
  const search = useSearch({ strict: false })
  const reason = useReason()
  const newest = attempts.at(-1)
  const wanted = Number(search['attempt'])
  const shown = attempts.find((attempt) => attempt.number === wanted) ?? newest
  const tab = tabs.find((each) => each === search['tab']) ?? (newest ? 'log' : 'spec')
  const go = (key: string) =>
    void router.navigate({
      to: '.',
      search: (before: Search) => ({ ...before, tab: key }),
      replace: true,
      resetScroll: false,
    })
  useTitle(job.name)
  useShortcuts([
    { keys: 'l', label: 'keys.log', run: () => go('log') },
    { keys: 'e', label: 'keys.events', run: () => go('events') },
  ])
  const waits = job.status === 'waiting' || job.status === 'ready' || job.status === 'retry'
  const over = shown?.outcome ? t('log.ended', { number: shown.number, ending: ending(shown, job, t) }) : null
  return (
    <div className="page job-page">
      <div className="page-head">
        <div className="job-title">
          <StatusWord status={job.status} />
          <h1>{job.name}</h1>
        </div>
        <Actions job={job} />
      </div>
      <Sentence job={job} attempts={attempts} />
      <div className="row wrap small muted">
        <span className="row">
          <code className="break">{job.id}</code>
          <Copy text={job.id} label={t('copy.id')} />
        </span>
        <span>{t(`kind.${job.kind}`)}</span>
        <Link to="/jobs" search={{ owner: job.owner_id }}>
          {job.owner_id}
        </Link>
        <span>{t('job.by', { who: job.submitted_by })}</span>
        {job.reason !== '' && job.reason !== job.status && <span>{reason(job.reason)}</span>}
        <Labels labels={job.labels} />
      </div>
      <StateLine job={job} newest={newest} events={events} />
      {waits && <WhyPanel id={job.id} />}
      {attempts.length > 0 && (
        <section className="panel">
          <Timeline job={job} attempts={attempts} events={events} chosen={shown?.number ?? null} />
        </section>
      )}
      <Tabs className="panel job-tabs" selectedKey={tab} onSelectionChange={(key) => go(String(key))}>
        <TabList aria-label={t('job.tabs')} className="tab-list">
          {tabs.map((each) => (
            <Tab key={each} id={each} className="tab">
              {t(`tab.${each}` as Key)}
            </Tab>
          ))}
        </TabList>
        <TabPanel id="log" className="tab-panel flush">
          {shown ? (
            <LogViewer
              key={shown.number}
              job={job.id}
              attempt={shown.number}
              attempts={attempts.map((attempt) => attempt.number)}
              ending={over}
            />
          ) : (
            <p className="log-empty muted">{t('log.no_attempt')}</p>
          )}
        </TabPanel>
        <TabPanel id="events" className="tab-panel flush">
          <EventsTab id={job.id} />
        </TabPanel>
        <TabPanel id="resources" className="tab-panel">
          <ResourcesTab job={job} attempts={attempts} />
        </TabPanel>
        <TabPanel id="spec" className="tab-panel">
          <SpecTab job={job} />
        </TabPanel>
        <TabPanel id="artifacts" className="tab-panel">
          <ArtifactsTab job={job} />
        </TabPanel>
        <TabPanel id="api" className="tab-panel">
          <ApiTab job={job} />
        </TabPanel>
      </Tabs>
    </div>
  )
}

function Sentence({ job, attempts }: { job: Schemas['Job']; attempts: Schemas['Attempt'][] }) {
  const t = useT()
  const now = useNow()
  const message = job.result?.message ?? ''
  return (
    <div className="sentence">
      <p>{sentence(job, attempts, now, t)}</p>
      {message !== '' && endedStatuses.includes(job.status) && <p className="muted break">{message}</p>}
    </div>
  )
}

function Actions({ job }: { job: Schemas['Job'] }) {
  const t = useT()
  const client = useQueryClient()
  const me = useQuery(meQuery)
  const [asked, setAsked] = useState<JobAction | null>(null)
  const work = useMutation({
    mutationFn: (action: JobAction) => act(action, job.id, job.attempt),
    onSuccess: (fresh) => {
      client.setQueryData(jobQuery(job.id).queryKey, fresh)
      setAsked(null)
      return client.invalidateQueries({ queryKey: ['job', job.id] })
    },
  })
  const may = mayAct(me.data, job.owner_id)
  const can = (action: JobAction) => may && canDo(action, job.status, job.kind)
  useShortcuts([
    { keys: 'c', label: 'keys.cancel', run: () => can('cancel') && setAsked('cancel') },
    { keys: 'r', label: 'keys.retry', run: () => can('retry') && work.mutate('retry') },
  ])
  if (!may) return null
  const asks = (action: JobAction) => {
    work.reset()
    setAsked(action)
  }
  return (
    <div className="row wrap">
      {can('retry') && (
        <Button className="button primary" isDisabled={work.isPending} onPress={() => work.mutate('retry')}>
          {t('action.retry')}
        </Button>
      )}
      {can('stop') && (
        <Button className="button" onPress={() => asks('stop')}>
          {t('action.stop')}
        </Button>
      )}
      {can('cancel') && (
        <Button className="button danger" onPress={() => asks('cancel')}>
          {t('action.cancel')}
        </Button>
      )}
      <Link className="button" to="/submit" search={{ from: job.id }}>
        {t('action.again')}
      </Link>
      {work.error && asked === null && (
        <div className="notice error" role="alert">
          <FailureText error={work.error} />
        </div>
      )}
      {(asked === 'cancel' || asked === 'stop') && (
        <Confirm
          title={t(`action.${asked}_question`, { name: job.name })}
          action={t(`action.${asked}`)}
          danger
          busy={work.isPending}
          error={work.error}
          onConfirm={() => work.mutate(asked)}
          onClose={() => setAsked(null)}
        >
          <p className="muted">{t(`action.${asked}_explained`)}</p>
        </Confirm>
      )}
    </div>
  )
}

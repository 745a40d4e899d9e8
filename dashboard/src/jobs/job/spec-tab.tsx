import type { Schemas } from '../../api/client'
import { Copy, Labels } from '../../design/parts'
import { language, useT } from '../../i18n/i18n'
import { bytes, duration } from '../../time/format'
import { Time } from '../../time/time'
import { quote } from './command-line'

/** As it was accepted, defaults filled in; the whole of it as JSON below. */
export function SpecTab({ job }: { job: Schemas['Job'] }) {
  const t = useT()
  const json = JSON.stringify(job, null, 2)
  const span = (seconds: unknown) =>
    typeof seconds === 'number' ? duration(seconds * 1_000, language()) : String(seconds)
  const facts: [string, React.ReactNode][] = [
    [t('spec.command'), <code key="command">{job.command.map(quote).join(' ')}</code>],
    [t('spec.binary'), job.binary_url && <code key="binary">{job.binary_url}</code>],
    [t('spec.input'), job.input_path && <code key="input">{job.input_path}</code>],
    [t('spec.output'), job.output_path && <code key="output">{job.output_path}</code>],
    [t('spec.env'), job.env && Object.keys(job.env).length > 0 && <Environment key="env" env={job.env} />],
    [t('column.pool'), job.pool],
    [t('column.priority'), job.priority],
    [
      t('spec.node_labels'),
      Object.keys(job.node_labels).length > 0 && <Labels key="labels" labels={job.node_labels} />,
    ],
    [t('resources.cpu'), t('resources.cores', { count: String(job.resources.cpu) })],
    [t('resources.memory'), bytes(job.resources.memory as number, language())],
    [t('spec.retries'), job.kind === 'task' && t('spec.retries_of', { count: job.retry_count, max: job.max_retries })],
    [t('spec.platform_failures'), job.platform_failures > 0 && job.platform_failures],
    [t('spec.evictions'), job.evictions > 0 && job.evictions],
    [t('spec.backoff'), span(job.backoff)],
    [t('spec.no_retry'), job.no_retry_exit_codes.length > 0 && job.no_retry_exit_codes.join(', ')],
    [t('spec.timeout'), job.timeout && span(job.timeout)],
    [t('spec.stop_grace'), span(job.stop_grace)],
    [t('spec.run_at'), job.run_at && <Time key="run_at" value={job.run_at} full />],
    [t('spec.start_within'), job.start_within && span(job.start_within)],
    [t('spec.round'), job.round > 1 && job.round],
    [t('spec.origin'), job.origin && `${job.origin.kind} ${job.origin.id} ${job.origin.key}`],
    [t('spec.key'), job.idempotency_key && <code key="key">{job.idempotency_key}</code>],
    [t('column.created'), <Time key="created" value={job.created_time} full />],
    [t('spec.started'), job.started_time && <Time key="started" value={job.started_time} full />],
    [t('spec.finished'), job.finished_time && <Time key="finished" value={job.finished_time} full />],
  ]
  return (
    <div className="stack">
      <dl className="facts">
        {facts
          .filter(([, value]) => value !== false && value !== null && value !== undefined && value !== '')
          .map(([name, value]) => (
            <div key={name} className="fact">
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      <details>
        <summary>{t('spec.json')}</summary>
        <div className="row spread">
          <span />
          <Copy text={json} label={t('copy.json')} />
        </div>
        <pre className="code">{json}</pre>
      </details>
    </div>
  )
}

function Environment({ env }: { env: Record<string, string> }) {
  return (
    <pre className="environment">
      {Object.entries(env)
        .map(([name, value]) => `${name}=${value}`)
        .join('\n')}
    </pre>
  )
}

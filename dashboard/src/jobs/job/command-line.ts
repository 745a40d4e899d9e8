// What the command line and curl take to do what a page shows. Pure.
import type { Schemas } from '../../api/client'

/** One word of a POSIX shell, quoted where it must be. */
export function quote(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word
  return `'${word.replaceAll("'", `'\\''`)}'`
}

/** What a spec has besides what is left out, as a submission takes it. */
export type Spec = Schemas['JobSubmit']

/** The `jobyard submit` line of a spec. Secrets are not written into it: everybody could see them. */
export function submitLine(spec: Spec): string {
  const words = ['jobyard', 'submit']
  const flag = (name: string, value: unknown) => {
    if (value !== undefined && value !== null && value !== '') words.push(`--${name}`, quote(String(value)))
  }
  flag('name', spec.name)
  flag('kind', spec.kind === 'task' ? undefined : spec.kind)
  flag('owner', spec.owner_id)
  flag('pool', spec.pool === 'default' ? undefined : spec.pool)
  flag('priority', spec.priority)
  flag('cpu', spec.resources?.cpu)
  flag('memory', spec.resources?.memory)
  flag('max-retries', spec.max_retries)
  flag('cpu-limit', spec.resources?.cpu_limit)
  flag('backoff', seconds(spec.backoff))
  flag('no-retry-exit-codes', spec.no_retry_exit_codes?.join(','))
  flag('timeout', seconds(spec.timeout))
  flag('stop-grace', seconds(spec.stop_grace))
  flag('run-at', spec.run_at)
  flag('start-within', seconds(spec.start_within))
  for (const [key, value] of Object.entries(spec.labels ?? {})) flag('label', `${key}=${value}`)
  for (const [key, value] of Object.entries(spec.node_labels ?? {})) flag('node-label', `${key}=${value}`)
  for (const [key, value] of Object.entries(spec.env ?? {})) flag('env', `${key}=${value}`)
  flag('io-class', spec.io_class)
  if (spec.preemptible) words.push('--preemptible')
  if (spec.exclusive) words.push('--exclusive')
  flag('binary', spec.binary_url)
  flag('input', spec.input_path)
  flag('output-to', spec.output_path)
  flag('idempotency-key', spec.idempotency_key)
  words.push('--', ...(spec.command ?? []).map(quote))
  return words.join(' ')
}

function seconds(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  return typeof value === 'number' ? `${value}s` : String(value)
}

/** The `curl` line that submits a spec. */
export function curlLine(spec: Spec, base: string): string {
  return [
    'curl -H "Authorization: Bearer $JOBYARD_TOKEN"',
    "-H 'Content-Type: application/json'",
    `-d ${quote(JSON.stringify(spec))}`,
    quote(`${base}api/v1/jobs`),
  ].join(' \\\n  ')
}

/** What would have to be submitted to get the same job again; secrets are not part of a job that was read. */
export function specOf(job: Schemas['Job']): Spec {
  const spec: Spec = {
    name: job.name,
    kind: job.kind,
    owner_id: job.owner_id,
    command: job.command,
    pool: job.pool,
    priority: job.priority,
    resources: job.resources,
  }
  if (job.binary_url) spec.binary_url = job.binary_url
  if (job.env && Object.keys(job.env).length > 0) spec.env = job.env
  if (Object.keys(job.labels).length > 0) spec.labels = job.labels
  if (Object.keys(job.node_labels).length > 0) spec.node_labels = job.node_labels
  if (job.input_path) spec.input_path = job.input_path
  if (job.output_path) spec.output_path = job.output_path
  if (job.timeout) spec.timeout = job.timeout
  if (job.start_within) spec.start_within = job.start_within
  if (job.no_retry_exit_codes.length > 0) spec.no_retry_exit_codes = job.no_retry_exit_codes
  if (job.kind === 'task') spec.max_retries = job.max_retries
  if (job.preemptible) spec.preemptible = true
  if (job.exclusive) spec.exclusive = true
  if (job.io_class !== 'mixed') spec.io_class = job.io_class
  return spec
}

// One sentence that says what is going on with a job.
import type { Schemas } from '../../api/client'
import { language, type Key, type Translate } from '../../i18n/i18n'
import { bytes, duration } from '../../time/format'

type Job = Schemas['Job']
type Attempt = Schemas['Attempt']

/** How an attempt ended: "exit 3", "killed by signal 9", "out of memory at 128 MiB". */
export function ending(
  end: Pick<Attempt, 'outcome' | 'exit_code' | 'signal' | 'usage'>,
  job: Job,
  t: Translate,
): string {
  if (!end.outcome) return ''
  if (end.outcome === 'oom_killed')
    return t('ending.memory', { limit: bytes(job.resources.memory as number, language()) })
  if (end.outcome === 'timed_out' && typeof job.timeout === 'number') {
    return t('ending.timeout', { timeout: duration(job.timeout * 1_000, language()) })
  }
  if (end.signal) return t('ending.signal', { signal: end.signal })
  if (end.outcome === 'failed' && typeof end.exit_code === 'number') return t('ending.exit', { code: end.exit_code })
  return t(`outcome.${end.outcome}` as Key)
}

/** `now` in milliseconds by the server's clock. */
export function sentence(job: Job, attempts: readonly Attempt[], now: number, t: Translate): string {
  const newest = attempts.at(-1)
  const node = newest?.node_name || t('sentence.some_node')
  const span = (from: string | null | undefined, to: string | null | undefined) =>
    duration(from ? Math.floor(((to ? Date.parse(to) : now) - Date.parse(from)) / 1_000) * 1_000 : 0, language())
  const exactSpan = (from?: string | null, to?: string | null) =>
    duration(from && to ? Date.parse(to) - Date.parse(from) : 0, language())
  switch (job.status) {
    case 'ready':
      return job.run_at && Date.parse(job.run_at) > now
        ? t('sentence.starts_in', { duration: span(new Date(now).toISOString(), job.run_at) })
        : t('sentence.ready')
    case 'waiting':
      return t('sentence.waiting', { duration: span(job.created_time, null), pool: job.pool })
    case 'running':
      return running(job, newest, node, span, t)
    case 'retry': {
      const due = job.next_start ? Date.parse(job.next_start) - now : null
      const why = newest ? ending(newest, job, t) : ''
      return due !== null && due > 0
        ? t('sentence.retry_in', {
            ending: why,
            number: newest?.number ?? 0,
            duration: duration(Math.ceil(due / 1_000) * 1_000, language()),
          })
        : t('sentence.retry', { ending: why, number: newest?.number ?? 0 })
    }
    case 'success':
      return newest?.started_time
        ? t('sentence.success', {
            duration: exactSpan(newest.started_time, newest.finished_time ?? job.finished_time),
            node,
          })
        : t('sentence.success_unstarted')
    case 'cancelled':
      return t('sentence.cancelled', { duration: exactSpan(job.created_time, job.finished_time) })
    case 'final_failed': {
      if (!newest || job.reason === 'expired') return t('sentence.expired')
      const values = { ending: ending(newest, job, t), node, number: newest.number, retries: job.max_retries }
      if (job.reason === 'not_retryable') return t('sentence.failed_final', values)
      if (job.reason === 'platform_failures') return t('sentence.failed_platform', values)
      return t('sentence.failed', values)
    }
  }
}

function running(
  job: Job,
  newest: Attempt | undefined,
  node: string,
  span: (from: string | null | undefined, to: string | null | undefined) => string,
  t: Translate,
): string {
  const number = newest?.number ?? 1
  if (job.intent === 'cancel' || job.intent === 'stop') return t('sentence.stopping', { node })
  if (job.intent === 'evict') return t('sentence.evicting', { node })
  if (job.reason === 'restarting' && newest) {
    const exit = newest.last_exit
    const why = exit
      ? ending({ outcome: 'failed', exit_code: exit.exit_code, signal: exit.signal, usage: null }, job, t)
      : ''
    return t('sentence.restarting', { ending: why, count: newest.restarts ?? 0, node })
  }
  if (newest?.phase === 'placed') return t('sentence.placed', { node })
  if (newest?.phase === 'starting') return t('sentence.starting', { node })
  if (newest?.phase === 'finishing') return t('sentence.finishing', { node })
  return job.kind === 'service'
    ? t('sentence.up', { node, duration: span(newest?.started_time, null) })
    : t('sentence.running', { node, duration: span(newest?.started_time, null), number })
}

// What was asked for beside what was used, and advice where the two are far apart.
import type { Schemas } from '../../api/client'
import { language, useT } from '../../i18n/i18n'
import { bytes, duration } from '../../time/format'

/** Whoever asks for less than this keeps nobody waiting. */
const ADVICE_BYTES = 256 * 1024 * 1024

interface ResourcesTabProps {
  job: Schemas['Job']
  attempts: readonly Schemas['Attempt'][]
}

export function ResourcesTab({ job, attempts }: ResourcesTabProps) {
  const t = useT()
  const memory = job.resources.memory as number
  const measured = attempts.filter((attempt) => attempt.usage && attempt.usage.peak_memory_bytes > 0)
  const peak = Math.max(0, ...measured.map((attempt) => attempt.usage?.peak_memory_bytes ?? 0))
  return (
    <div className="stack">
      <dl className="facts">
        <dt>{t('resources.cpu')}</dt>
        <dd>
          {t('resources.cores', { count: String(job.resources.cpu) })}
          {job.resources.cpu_limit ? ` · ${t('resources.cpu_limit', { count: String(job.resources.cpu_limit) })}` : ''}
        </dd>
        <dt>{t('resources.memory')}</dt>
        <dd>{bytes(memory, language())}</dd>
      </dl>
      {peak > 0 && peak < memory / 4 && memory > ADVICE_BYTES && (
        <p className="notice">
          {t('resources.less', { asked: bytes(memory, language()), peak: bytes(peak, language()) })}
        </p>
      )}
      {peak > memory * 0.9 && (
        <p className="notice warning">
          {t('resources.more', { asked: bytes(memory, language()), peak: bytes(peak, language()) })}
        </p>
      )}
      {attempts.some((attempt) => attempt.usage) ? (
        <div className="scroll-x">
          <table className="data">
            <thead>
              <tr>
                <th scope="col">{t('column.attempt')}</th>
                <th scope="col">{t('resources.peak')}</th>
                <th scope="col">{t('resources.wall')}</th>
                <th scope="col">{t('resources.user')}</th>
                <th scope="col">{t('resources.system')}</th>
                <th scope="col">{t('resources.average')}</th>
                <th scope="col">{t('resources.limits')}</th>
              </tr>
            </thead>
            <tbody>
              {attempts.map(
                (attempt) =>
                  attempt.usage && (
                    <UsageRow key={attempt.number} number={attempt.number} usage={attempt.usage} memory={memory} />
                  ),
              )}
            </tbody>
          </table>
        </div>
      ) : (
        <p className="muted">{t('resources.none')}</p>
      )}
    </div>
  )
}

function UsageRow({ number, usage, memory }: { number: number; usage: Schemas['Usage']; memory: number }) {
  const [wall, user, system] = [usage.wall as number, usage.cpu_user as number, usage.cpu_system as number]
  const share = memory > 0 ? Math.min(1, usage.peak_memory_bytes / memory) : 0
  const span = (seconds: number) => duration(seconds * 1_000, language())
  return (
    <tr>
      <td>{number}</td>
      <td>
        {bytes(usage.peak_memory_bytes, language())}
        <span className="meter" aria-hidden="true">
          <i style={{ width: `${share * 100}%` }} />
        </span>
      </td>
      <td>{span(wall)}</td>
      <td>{span(user)}</td>
      <td>{span(system)}</td>
      <td>{wall > 0 ? ((user + system) / wall).toFixed(2) : '–'}</td>
      <td>{usage.limits}</td>
    </tr>
  )
}

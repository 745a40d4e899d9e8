import type { Schemas } from '../../api/client'
import { baseUrl } from '../../api/client'
import { Command } from '../../design/parts'
import { useT } from '../../i18n/i18n'
import { curlLine, specOf, submitLine } from './command-line'

/** The lines that do, on the command line and with curl, what this page shows. */
export function ApiTab({ job }: { job: Schemas['Job'] }) {
  const t = useT()
  const curl = (method: string, path: string) =>
    `curl ${method === 'GET' ? '' : `-X ${method} `}-H "Authorization: Bearer $JOBYARD_TOKEN" ${baseUrl}api/v1/jobs/${job.id}${path}`
  return (
    <div className="stack">
      <h2>{t('api_tab.see')}</h2>
      <Command text={`jobyard get ${job.id}`} />
      <Command text={`jobyard logs -f ${job.id}`} />
      <Command text={curl('GET', '')} />
      <h2>{t('api_tab.change')}</h2>
      <Command text={`jobyard cancel ${job.id}`} />
      <Command text={`jobyard retry ${job.id}`} />
      <Command text={curl('POST', '/cancel')} />
      <h2>{t('api_tab.again')}</h2>
      <Command text={submitLine(specOf(job))} />
      <Command text={curlLine(specOf(job), baseUrl)} />
    </div>
  )
}

import { useT } from '../i18n/i18n'
import { Command } from './parts'
import { baseUrl } from '../api/client'

/** What an installation without jobs says: three commands to begin with. */
export function Empty() {
  const t = useT()
  return (
    <section className="empty stack">
      <h2>{t('empty.title')}</h2>
      <p className="muted">{t('empty.text')}</p>
      <ol className="stack">
        <li>
          <p>{t('empty.run')}</p>
          <Command text="jobyard run -- sh -c 'echo hello; date'" />
        </li>
        <li>
          <p>{t('empty.submit')}</p>
          <Command text="jobyard submit --name nightly --label team=me ./report.sh" />
        </li>
        <li>
          <p>{t('empty.call')}</p>
          <Command
            text={`curl -H "Authorization: Bearer $JOBYARD_TOKEN" -H 'Content-Type: application/json' \\\n  -d '{"command":["echo","hello"]}' ${baseUrl}api/v1/jobs`}
          />
        </li>
      </ol>
    </section>
  )
}

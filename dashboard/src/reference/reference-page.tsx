// The API as this server describes it, drawn here: nothing is loaded from elsewhere.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button, Input, SearchField } from 'react-aria-components'
import { api, baseUrl, data, fetchApi } from '../api/client'
import { Command, Failure, FailureText, Loading } from '../design/parts'
import { useTitle } from '../app/title'
import { useT } from '../i18n/i18n'
import { callsOf, shapeOf, type Call, type Description } from './description'
import './reference.css'

export default function ReferencePage() {
  const t = useT()
  useTitle(t('nav.reference'))
  const [text, setText] = useState('')
  const description = useQuery({
    queryKey: ['openapi'],
    queryFn: async () => (await data(api.GET('/api/v1/openapi.json'))) as unknown as Description,
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (!description.data)
    return <div className="page">{description.error ? <Failure error={description.error} /> : <Loading />}</div>
  const wanted = text.trim().toLowerCase()
  const calls = callsOf(description.data).filter((call) =>
    `${call.method} ${call.path} ${call.summary}`.toLowerCase().includes(wanted),
  )
  const groups = [...Map.groupBy(calls, (call) => call.tag)]
  return (
    <div className="page stack">
      <div className="page-head">
        <h1>{t('nav.reference')}</h1>
        <SearchField className="node-search" aria-label={t('reference.filter')} value={text} onChange={setText}>
          <Input className="input" placeholder={t('reference.filter')} />
        </SearchField>
      </div>
      <p className="muted">{t('reference.text')}</p>
      <Command text={`${baseUrl}api/v1/openapi.json`} />
      {calls.length === 0 && <p className="muted">{t('palette.nothing')}</p>}
      {groups.map(([tag, members]) => (
        <section key={tag} className="calls">
          <h2>{tag}</h2>
          {members.map((call) => (
            <CallView key={`${call.method} ${call.path}`} call={call} description={description.data} />
          ))}
        </section>
      ))}
    </div>
  )
}

function CallView({ call, description }: { call: Call; description: Description }) {
  const t = useT()
  const [open, setOpen] = useState(false)
  return (
    <details className="panel call" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <code className={`method ${call.method}`}>{call.method.toUpperCase()}</code>
        <code className="break">{call.path}</code>
        <span className="muted">{call.summary}</span>
      </summary>
      {open && (
        <div className="body stack">
          {call.description !== '' && <p>{call.description}</p>}
          {call.parameters.length > 0 && (
            <div className="scroll-x">
              <table className="data">
                <thead>
                  <tr>
                    <th scope="col">{t('reference.parameter')}</th>
                    <th scope="col">{t('reference.where')}</th>
                    <th scope="col">{t('reference.meaning')}</th>
                  </tr>
                </thead>
                <tbody>
                  {call.parameters.map((parameter) => (
                    <tr key={`${parameter.in} ${parameter.name}`}>
                      <td>
                        <code>{parameter.name}</code>
                        {parameter.required && ' *'}
                      </td>
                      <td>{parameter.in}</td>
                      <td className="break">{parameter.description ?? ''}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
          {call.body && (
            <div>
              <h3>{t('reference.body')}</h3>
              <pre className="code">{shapeOf(description, call.body)}</pre>
            </div>
          )}
          {call.answers.map((answer) => (
            <div key={answer.status}>
              <h3>
                {answer.status} <span className="muted">{answer.description}</span>
              </h3>
              {answer.schema && answer.status.startsWith('2') && (
                <pre className="code">{shapeOf(description, answer.schema)}</pre>
              )}
            </div>
          ))}
          {call.method === 'get' && call.isPlain && <TryIt call={call} />}
        </div>
      )}
    </details>
  )
}

/** Reads what needs no parameters, with the session of the page. */
function TryIt({ call }: { call: Call }) {
  const t = useT()
  const answer = useQuery({
    queryKey: ['try', call.path],
    queryFn: async () => JSON.stringify(await (await fetchApi(call.path)).json(), null, 2).slice(0, 20_000),
    enabled: false,
    retry: false,
  })
  return (
    <div className="stack">
      <div>
        <Button className="button" onPress={() => void answer.refetch()}>
          {t('reference.try')}
        </Button>
      </div>
      {answer.error && <FailureText error={answer.error} />}
      {answer.data !== undefined && <pre className="code try">{answer.data}</pre>}
    </div>
  )
}

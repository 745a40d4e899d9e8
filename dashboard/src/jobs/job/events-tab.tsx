import { useQuery } from '@tanstack/react-query'
import { Failure, Loading } from '../../design/parts'
import { statuses, useReason } from '../../design/status'
import { useT, type Key } from '../../i18n/i18n'
import { Time } from '../../time/time'
import { eventsQuery } from './queries'

const words: Record<string, Key> = Object.fromEntries([
  ...statuses.map((status) => [status, `status.${status}`]),
  ...['placed', 'starting', 'finishing'].map((phase) => [phase, `phase.${phase}`]),
])

/** Every change of the job, the newest first. */
export function EventsTab({ id }: { id: string }) {
  const t = useT()
  const reason = useReason()
  const events = useQuery(eventsQuery(id))
  if (events.error) return <Failure error={events.error} />
  if (!events.data) return <Loading />
  const items = events.data.items.toReversed()
  const word = (text: string) => (words[text] ? t(words[text]) : text)
  return (
    <div className="scroll-x">
      <table className="data">
        <thead>
          <tr>
            <th scope="col">{t('column.time')}</th>
            <th scope="col">{t('column.attempt')}</th>
            <th scope="col">{t('column.change')}</th>
            <th scope="col">{t('column.why')}</th>
            <th scope="col">{t('column.who')}</th>
          </tr>
        </thead>
        <tbody>
          {items.map((event) => (
            <tr key={event.cursor}>
              <td>
                <Time value={event.time} />
              </td>
              <td>{event.attempt ?? ''}</td>
              <td className="nowrap">
                {event.from !== '' && <span className="muted">{word(event.from)} → </span>}
                {word(event.to)}
              </td>
              <td className="break">{reason(event.why)}</td>
              <td className="break">{event.who}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {events.data.next_cursor && <p className="muted log-empty">{t('events.more')}</p>}
    </div>
  )
}

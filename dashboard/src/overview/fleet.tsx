// What the fleet offers and what of it is reserved, and whether the parts are well.
import { Link } from '@tanstack/react-router'
import type { Schemas } from '../api/client'
import { Panel } from '../design/parts'
import { Share } from '../design/share'
import { StatusWord } from '../design/status'
import { language, useT } from '../i18n/i18n'
import { bytes } from '../time/format'
import { Ago, useNow } from '../time/time'

type Summary = Schemas['Summary']

export function Fleet({ summary }: { summary: Summary }) {
  const t = useT()
  const whole = {
    name: '',
    nodes: summary.nodes,
    nodes_heard: summary.nodes_heard,
    capacity: summary.capacity,
    reserved: summary.reserved,
  }
  const pools = summary.pools && summary.pools.length > 0 ? summary.pools : [whole]
  return (
    <Panel
      title={t('overview.capacity')}
      aside={
        <Link to="/nodes" className="small">
          {t('overview.all_nodes')}
        </Link>
      }
      flush
    >
      <div className="scroll-x">
        <table className="data">
          <thead>
            <tr>
              <th scope="col">{t('column.pool')}</th>
              <th scope="col">{t('nav.nodes')}</th>
              <th scope="col">{t('nodes.cpu')}</th>
              <th scope="col">{t('nodes.memory')}</th>
            </tr>
          </thead>
          <tbody>
            {pools.map((pool) => (
              <tr key={pool.name}>
                <td>
                  {pool.name === '' ? (
                    t('overview.all_pools')
                  ) : (
                    <Link to="/jobs" search={{ pool: pool.name }}>
                      {pool.name}
                    </Link>
                  )}
                </td>
                <td className="nowrap">{t('overview.heard', { heard: pool.nodes_heard, all: pool.nodes })}</td>
                <td>
                  <Share
                    used={pool.reserved.cpu}
                    whole={pool.capacity.cpu}
                    write={(value) => value.toFixed(1).replace(/\.0$/, '')}
                  />
                </td>
                <td>
                  <Share
                    used={pool.reserved.memory as number}
                    whole={pool.capacity.memory as number}
                    write={(value) => bytes(value, language())}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  )
}

/** Longer than this without a sign is called silent: their periods are 1 s and 5 s. */
const SILENT_MS = 30_000

export function Health({ summary }: { summary: Summary }) {
  const t = useT()
  const now = useNow()
  const health = summary.health
  const parts = [
    { name: t('health.report_door'), time: health?.report_door_time },
    { name: t('health.informer'), time: health?.informer_time },
  ]
  return (
    <Panel title={t('overview.health')} flush>
      <table className="data">
        <tbody>
          <tr>
            <th scope="row">{t('health.server')}</th>
            <td>
              <StatusWord status="success" word={t('health.well')} />
            </td>
            <td>{summary.version}</td>
          </tr>
          <tr>
            <th scope="row">{t('health.datastore')}</th>
            <td>
              <StatusWord status="success" word={t('health.well')} />
            </td>
            <td>
              {summary.datastore === 'postgres'
                ? 'PostgreSQL'
                : summary.datastore === 'sqlite'
                  ? 'SQLite'
                  : summary.datastore}
              {health && ` · ${t('health.reading', { ms: health.reading_ms })}`}
            </td>
          </tr>
          {health &&
            parts.map(({ name, time }) => {
              const well = time ? now - Date.parse(time) < SILENT_MS : false
              return (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>
                    <StatusWord
                      status={well ? 'success' : 'final_failed'}
                      word={well ? t('health.well') : t('health.silent')}
                    />
                  </td>
                  <td>{time ? <Ago value={time} /> : t('health.never')}</td>
                </tr>
              )
            })}
          <tr>
            <th scope="row">{t('nav.nodes')}</th>
            <td>
              {summary.nodes_heard === summary.nodes && summary.nodes > 0 ? (
                <StatusWord status="success" word={t('health.well')} />
              ) : (
                <StatusWord
                  status={summary.nodes === 0 ? 'waiting' : 'final_failed'}
                  word={summary.nodes === 0 ? t('health.none') : t('health.silent')}
                />
              )}
            </td>
            <td>
              <Link to="/nodes">{t('overview.heard', { heard: summary.nodes_heard, all: summary.nodes })}</Link>
            </td>
          </tr>
        </tbody>
      </table>
    </Panel>
  )
}

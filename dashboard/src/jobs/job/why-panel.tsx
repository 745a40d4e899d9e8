// Why a job isn't running yet, gate by gate and node by node, and what would change that.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Failure, Loading, Panel } from '../../design/parts'
import { Shape } from '../../design/status'
import { useT, type Key } from '../../i18n/i18n'
import { Ago } from '../../time/time'
import { useWhyText } from '../why-text'
import { whyQuery } from './queries'

const gates = new Set(['artifact', 'run_at', 'backoff', 'placement'])

export function WhyPanel({ id }: { id: string }) {
  const t = useT()
  const why = useQuery({ ...whyQuery(id), refetchInterval: 5_000 })
  const whyText = useWhyText()
  const told = why.data ? whyText(why.data) : null
  return (
    <Panel title={t('why.title')}>
      {why.error ? (
        <Failure error={why.error} />
      ) : !why.data ? (
        <Loading />
      ) : (
        <div className="stack">
          <p>{told?.summary}</p>
          {told && told.remedy !== '' && (
            <p className="notice warning">
              <span>
                <strong>{t('why.remedy')}</strong> {told.remedy}
              </span>
            </p>
          )}
          <ul className="gates">
            {why.data.gates.map((gate) => (
              <li key={gate.gate} className={gate.open ? 'open' : 'shut'}>
                <span className={`status ${gate.open ? 'success' : 'waiting'}`}>
                  <Shape status={gate.open ? 'success' : 'waiting'} />
                  {gates.has(gate.gate) ? t(`gate.${gate.gate}` as Key) : gate.gate}
                </span>
                <span className="muted">
                  {gate.open ? t('why.passed') : t('why.holds')} {!gates.has(gate.gate) && gate.detail}{' '}
                  {gate.opens_time && <Ago value={gate.opens_time} />}
                </span>
              </li>
            ))}
          </ul>
          {why.data.nodes.length > 0 && (
            <div className="scroll-x">
              <table className="data">
                <thead>
                  <tr>
                    <th scope="col">{t('column.node')}</th>
                    <th scope="col">{t('why.fits')}</th>
                    <th scope="col">{t('why.obstacle')}</th>
                  </tr>
                </thead>
                <tbody>
                  {why.data.nodes.map((node) => (
                    <tr key={node.node_id}>
                      <td>
                        <Link to="/nodes/$id" params={{ id: node.node_id }}>
                          {node.name}
                        </Link>
                      </td>
                      <td className="nowrap">
                        {node.fits ? t('why.yes') : node.lasting ? t('why.never') : t('why.not_now')}
                      </td>
                      <td className="break">{node.obstacle}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </div>
      )}
    </Panel>
  )
}

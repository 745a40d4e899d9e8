// One node: what it offers, what is on it, and the gate that operators set.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { Button } from 'react-aria-components'
import { useTitle } from '../app/title'
import { Confirm, Copy, Failure, FailureText, Labels, Loading, Panel } from '../design/parts'
import { Share } from '../design/share'
import { PhaseWord } from '../design/status'
import { language, useT } from '../i18n/i18n'
import { useRefreshOnChange, useStream } from '../live/live'
import { mayOperate, meQuery } from '../session/me'
import { bytes } from '../time/format'
import { Ago, Span } from '../time/time'
import { drainQuery, nodeAttemptsQuery, nodeQuery, setGate, type Gate, type Node, type NodeAttempt } from './calls'
import { NodeState } from './state'
import './nodes.css'

export default function NodePage() {
  const { id } = useParams({ strict: false }) as { id: string }
  const t = useT()
  const node = useQuery({ ...nodeQuery(id), refetchInterval: 5_000 })
  const attempts = useQuery({ ...nodeAttemptsQuery(id), refetchInterval: 10_000 })
  const keys = useMemo(() => [['nodes', id]], [id])
  useStream(null)
  useRefreshOnChange(keys, 1_500)
  useTitle(node.data?.name ?? t('nav.nodes'))
  if (!node.data) return <div className="page">{node.error ? <Failure error={node.error} /> : <Loading />}</div>
  const items = attempts.data?.items ?? []
  return (
    <div className="page stack">
      <div className="page-head">
        <div className="row wrap">
          <NodeState node={node.data} />
          <h1>{node.data.name}</h1>
        </div>
        <GateButtons node={node.data} />
      </div>
      {(node.data.suspended || node.data.quarantined) && (
        <p className="notice warning">{node.data.quarantined ?? node.data.suspended}</p>
      )}
      <Panel title={t('node.offers')}>
        <div className="node-facts">
          <dl className="facts">
            <dt>{t('column.id')}</dt>
            <dd className="row">
              <code className="break">{node.data.id}</code>
              <Copy text={node.data.id} label={t('copy.id')} />
            </dd>
            <dt>{t('column.pool')}</dt>
            <dd>{node.data.pool}</dd>
            <dt>{t('nodes.heard')}</dt>
            <dd>
              <Ago value={node.data.heard_time} />
            </dd>
            <dt>{t('nodes.version')}</dt>
            <dd>{node.data.version}</dd>
            <dt>{t('node.containment')}</dt>
            <dd>{node.data.containment}</dd>
            <dt>{t('node.runtimes')}</dt>
            <dd>{node.data.runtimes.join(', ')}</dd>
            {Object.keys(node.data.labels).length > 0 && (
              <>
                <dt>{t('column.labels')}</dt>
                <dd>
                  <Labels labels={node.data.labels} />
                </dd>
              </>
            )}
          </dl>
          <div className="stack">
            <Packed node={node.data} attempts={items} by="cpu" title={t('nodes.cpu')} />
            <Packed node={node.data} attempts={items} by="memory" title={t('nodes.memory')} />
          </div>
        </div>
      </Panel>
      <Panel
        title={t('node.attempts')}
        aside={
          <Link to="/jobs" search={{ node: node.data.name }}>
            {t('node.all_jobs')}
          </Link>
        }
        flush
      >
        {attempts.error ? (
          <Failure error={attempts.error} />
        ) : items.length === 0 ? (
          <p className="nothing muted">{attempts.isPending ? t('loading') : t('node.nothing')}</p>
        ) : (
          <AttemptTable attempts={items} />
        )}
      </Panel>
    </div>
  )
}

function Packed({
  node,
  attempts,
  by,
  title,
}: {
  node: Node
  attempts: NodeAttempt[]
  by: 'cpu' | 'memory'
  title: string
}) {
  const whole = node.capacity[by] as number
  const write = (value: number) => (by === 'memory' ? bytes(value, language()) : String(Math.round(value * 10) / 10))
  return (
    <div>
      <h3>{title}</h3>
      <Share used={node.reserved[by] as number} whole={whole} write={write} />
      <div className="packed" aria-hidden="true">
        {attempts.slice(0, 200).map((attempt, index) => (
          <i
            key={`${attempt.job_id} ${attempt.number}`}
            className={`tint-${index % 4}`}
            title={`${attempt.job_name} · ${write(attempt.resources[by] as number)}`}
            style={{ width: `${whole > 0 ? Math.min(100, ((attempt.resources[by] as number) / whole) * 100) : 0}%` }}
          />
        ))}
      </div>
    </div>
  )
}

function AttemptTable({ attempts }: { attempts: NodeAttempt[] }) {
  const t = useT()
  return (
    <div className="scroll-x">
      <table className="data">
        <thead>
          <tr>
            <th scope="col">{t('column.name')}</th>
            <th scope="col">{t('column.owner')}</th>
            <th scope="col">{t('column.attempt')}</th>
            <th scope="col">{t('column.status')}</th>
            <th scope="col">{t('column.ran')}</th>
            <th scope="col">{t('resources.cpu')}</th>
            <th scope="col">{t('resources.memory')}</th>
            <th scope="col">{t('column.priority')}</th>
          </tr>
        </thead>
        <tbody>
          {attempts.map((attempt) => (
            <tr key={`${attempt.job_id} ${attempt.number}`}>
              <td className="break">
                <Link to="/jobs/$id" params={{ id: attempt.job_id }}>
                  {attempt.job_name}
                </Link>
              </td>
              <td className="break">{attempt.owner_id}</td>
              <td>{attempt.number}</td>
              <td>
                <PhaseWord phase={attempt.phase} />
              </td>
              <td>
                <Span from={attempt.started_time ?? attempt.placed_time} />
              </td>
              <td>{attempt.resources.cpu}</td>
              <td className="nowrap">{bytes(attempt.resources.memory as number, language())}</td>
              <td>{attempt.priority}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function GateButtons({ node }: { node: Node }) {
  const t = useT()
  const client = useQueryClient()
  const me = useQuery(meQuery)
  const [asked, setAsked] = useState<Gate | null>(null)
  const work = useMutation({
    mutationFn: (gate: Gate) => setGate(node.id, gate),
    onSuccess: () => {
      setAsked(null)
      return client.invalidateQueries({ queryKey: ['nodes'] })
    },
  })
  if (!mayOperate(me.data)) return null
  return (
    <div className="row wrap">
      {node.gate !== 'open' && (
        <Button className="button primary" isDisabled={work.isPending} onPress={() => work.mutate('uncordon')}>
          {t('gate_action.uncordon')}
        </Button>
      )}
      {node.gate === 'open' && (
        <Button className="button" isDisabled={work.isPending} onPress={() => work.mutate('cordon')}>
          {t('gate_action.cordon')}
        </Button>
      )}
      {node.gate !== 'draining' && (
        <Button className="button danger" onPress={() => setAsked('drain')}>
          {t('gate_action.drain')}
        </Button>
      )}
      {work.error && asked === null && (
        <div className="notice error" role="alert">
          <FailureText error={work.error} />
        </div>
      )}
      {asked === 'drain' && (
        <DrainDialog
          node={node}
          busy={work.isPending}
          error={work.error}
          onConfirm={() => work.mutate('drain')}
          onClose={() => setAsked(null)}
        />
      )}
    </div>
  )
}

interface DrainDialogProps {
  node: Node
  busy: boolean
  error: unknown
  onConfirm: () => void
  onClose: () => void
}

function DrainDialog({ node, busy, error, onConfirm, onClose }: DrainDialogProps) {
  const t = useT()
  const preview = useQuery(drainQuery(node.id))
  return (
    <Confirm
      title={t('drain.question', { name: node.name })}
      action={t('drain.go')}
      danger
      busy={busy}
      error={error}
      onConfirm={onConfirm}
      onClose={onClose}
    >
      <p>{t('drain.explained')}</p>
      {preview.error ? (
        <Failure error={preview.error} />
      ) : !preview.data ? (
        <Loading />
      ) : (
        <>
          <p>
            <strong>{t('drain.count', { count: preview.data.attempts, wait: preview.data.would_wait })}</strong>
          </p>
          <div className="drain-moves">
            <table className="data">
              <tbody>
                {preview.data.moves.slice(0, 100).map((move) => (
                  <tr key={`${move.job_id} ${move.number}`}>
                    <td className="break">{move.job_name}</td>
                    <td className="nowrap">{move.to_node_name ? `→ ${move.to_node_name}` : t('drain.waits')}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </Confirm>
  )
}

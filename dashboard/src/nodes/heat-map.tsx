// One cell a node, in groups by pool. A step is a colour, a pattern and a number.
import { Link } from '@tanstack/react-router'
import { useT } from '../i18n/i18n'
import { useNow } from '../time/time'
import type { Node } from './calls'

export const measures = ['memory', 'cpu', 'attempts', 'silence'] as const
export type Measure = (typeof measures)[number]

/** So many cells are drawn; the filter narrows the rest. */
const MAX_CELLS = 2_000
const STEPS = 5

/** 0 to 1: how full, or how silent up to a minute. */
function value(node: Node, measure: Measure, now: number): number {
  const share = (part: number, whole: number) => (whole > 0 ? Math.min(1, part / whole) : 0)
  if (measure === 'memory') return share(node.reserved.memory as number, node.capacity.memory as number)
  if (measure === 'cpu') return share(node.reserved.cpu, node.capacity.cpu)
  if (measure === 'attempts') return share(node.attempts, node.max_attempts)
  return Math.min(1, Math.max(0, now - Date.parse(node.heard_time)) / 60_000)
}

export function HeatMap({ nodes, measure }: { nodes: Node[]; measure: Measure }) {
  const t = useT()
  const now = useNow()
  const pools = Map.groupBy(nodes.slice(0, MAX_CELLS), (node) => node.pool)
  return (
    <div className="stack">
      {[...pools].map(([pool, members]) => (
        <div key={pool} className="heat-pool">
          <h3>{pool}</h3>
          <ul className="heat">
            {members.map((node) => {
              const share = value(node, measure, now)
              const step = Math.min(STEPS - 1, Math.floor(share * STEPS))
              const number = measure === 'silence' ? Math.round(share * 60) : Math.round(share * 100)
              const text = `${node.name}: ${t(`measure.${measure}`)} ${number}${measure === 'silence' ? ' s' : ' %'}`
              return (
                <li key={node.id}>
                  <Link
                    to="/nodes/$id"
                    params={{ id: node.id }}
                    className={`heat-cell step-${step} ${node.available ? '' : 'out'}`}
                    title={text}
                    aria-label={text}
                  >
                    {number}
                  </Link>
                </li>
              )
            })}
          </ul>
        </div>
      ))}
      <div className="row wrap small muted">
        {Array.from({ length: STEPS }, (_, step) => (
          <span key={step} className="row">
            <i className={`heat-cell sample step-${step}`} aria-hidden="true" />
            {measure === 'silence' ? `${step * 12}–${(step + 1) * 12} s` : `${step * 20}–${(step + 1) * 20} %`}
          </span>
        ))}
        <span className="row">
          <i className="heat-cell sample out" aria-hidden="true" />
          {t('nodes.out')}
        </span>
      </div>
      {nodes.length > MAX_CELLS && <p className="muted">{t('nodes.first', { count: MAX_CELLS })}</p>}
    </div>
  )
}

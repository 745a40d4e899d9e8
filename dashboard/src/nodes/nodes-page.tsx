// The fleet: a heat map to see it at a glance, and the same as a table.
import { useQuery } from '@tanstack/react-query'
import { Link, useRouter, useSearch } from '@tanstack/react-router'
import { useRef } from 'react'
import { Input, SearchField, ToggleButton, ToggleButtonGroup } from 'react-aria-components'
import { useTitle } from '../app/title'
import { useShortcuts } from '../app/keyboard'
import { Failure, Labels, Loading, Panel } from '../design/parts'
import { Share } from '../design/share'
import { language, useT } from '../i18n/i18n'
import { useRefreshOnChange, useStream } from '../live/live'
import { bytes } from '../time/format'
import { Ago } from '../time/time'
import { nodesQuery, type Node } from './calls'
import { HeatMap, measures, type Measure } from './heat-map'
import { NodeState } from './state'
import './nodes.css'

const keys = [nodesQuery.queryKey]
/** More rows than this are asked for by the filter. */
const MAX_ROWS = 400

export default function NodesPage() {
  const t = useT()
  useTitle(t('nav.nodes'))
  const router = useRouter()
  const search = useSearch({ strict: false })
  const field = useRef<HTMLInputElement>(null)
  const nodes = useQuery({ ...nodesQuery, refetchInterval: 5_000 })
  useStream(null)
  useRefreshOnChange(keys, 2_000)
  useShortcuts([{ keys: '/', label: 'keys.filter', run: () => field.current?.focus() }])
  const text = typeof search['q'] === 'string' ? search['q'] : ''
  const measure = measures.find((each) => each === search['by']) ?? 'memory'
  const go = (change: Record<string, string | undefined>) =>
    void router.navigate({ to: '.', search: { ...search, ...change }, replace: true })
  if (nodes.error && !nodes.data) {
    return (
      <div className="page">
        <Failure error={nodes.error} />
      </div>
    )
  }
  if (!nodes.data) {
    return (
      <div className="page">
        <Loading />
      </div>
    )
  }
  const all = nodes.data.items
  const shown = all.filter((node) => matches(node, text))
  return (
    <div className="page stack">
      <div className="page-head">
        <h1>{t('nav.nodes')}</h1>
        <SearchField
          className="node-search"
          aria-label={t('nodes.filter')}
          value={text}
          onChange={(value) => go({ q: value })}
        >
          <Input ref={field} className="input" placeholder={t('nodes.filter')} />
        </SearchField>
      </div>
      {nodes.error && <Failure error={nodes.error} />}
      {all.length === 0 ? (
        <p className="muted">{t('nodes.none')}</p>
      ) : (
        <>
          <Panel
            title={t('nodes.heat')}
            aside={
              <ToggleButtonGroup
                aria-label={t('nodes.measure')}
                className="toggles"
                selectionMode="single"
                disallowEmptySelection
                selectedKeys={[measure]}
                onSelectionChange={(chosen) => go({ by: String([...chosen][0] as Measure) })}
              >
                {measures.map((each) => (
                  <ToggleButton key={each} id={each} className="button">
                    {t(`measure.${each}`)}
                  </ToggleButton>
                ))}
              </ToggleButtonGroup>
            }
          >
            <HeatMap nodes={shown} measure={measure} />
          </Panel>
          <Panel
            title={t('nodes.table')}
            aside={<span className="small muted">{t('nodes.count', { count: shown.length })}</span>}
            flush
          >
            <NodeTable nodes={shown.slice(0, MAX_ROWS)} />
            {shown.length > MAX_ROWS && <p className="nothing muted">{t('nodes.first', { count: MAX_ROWS })}</p>}
          </Panel>
        </>
      )}
    </div>
  )
}

function matches(node: Node, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  if (wanted === '') return true
  const labels = Object.entries(node.labels).map(([key, value]) => `${key}=${value}`)
  return [node.name, node.id, node.pool, ...labels].some((each) => each.toLowerCase().includes(wanted))
}

function NodeTable({ nodes }: { nodes: Node[] }) {
  const t = useT()
  return (
    <div className="scroll-x">
      <table className="data">
        <thead>
          <tr>
            <th scope="col">{t('column.name')}</th>
            <th scope="col">{t('column.status')}</th>
            <th scope="col">{t('column.pool')}</th>
            <th scope="col" className="number">
              {t('measure.attempts')}
            </th>
            <th scope="col">{t('nodes.cpu')}</th>
            <th scope="col">{t('nodes.memory')}</th>
            <th scope="col">{t('nodes.heard')}</th>
            <th scope="col">{t('nodes.version')}</th>
            <th scope="col">{t('column.labels')}</th>
          </tr>
        </thead>
        <tbody>
          {nodes.map((node) => (
            <tr key={node.id}>
              <td className="break">
                <Link to="/nodes/$id" params={{ id: node.id }}>
                  {node.name}
                </Link>
              </td>
              <td>
                <NodeState node={node} />
              </td>
              <td className="break">{node.pool}</td>
              <td className="number nowrap">
                {node.attempts} / {node.max_attempts}
              </td>
              <td>
                <Share
                  used={node.reserved.cpu}
                  whole={node.capacity.cpu}
                  write={(value) => String(Math.round(value * 10) / 10)}
                />
              </td>
              <td>
                <Share
                  used={node.reserved.memory as number}
                  whole={node.capacity.memory as number}
                  write={(value) => bytes(value, language())}
                />
              </td>
              <td>
                <Ago value={node.heard_time} />
              </td>
              <td className="nowrap">{node.version}</td>
              <td>
                <Labels labels={node.labels} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

// Searches the whole log on the server; what it found is a list to step through.
import { useEffect, useState, type RefObject } from 'react'
import { Button, Input, SearchField, ToggleButton } from 'react-aria-components'
import { Icon } from '../design/icons'
import { FailureText } from '../design/parts'
import { useT } from '../i18n/i18n'
import type { Stream } from './lines'
import { useLogSearch, type Match } from './search'

interface SearchBoxProps {
  job: string
  attempt: number
  stream: Stream | null
  field: RefObject<HTMLInputElement | null>
  text: string
  exactCase: boolean
  onText: (text: string) => void
  onExactCase: (exact: boolean) => void
  onJump: (match: Match) => void
}

export function SearchBox({
  job,
  attempt,
  stream,
  field,
  text,
  exactCase,
  onText,
  onExactCase,
  onJump,
}: SearchBoxProps) {
  const t = useT()
  const [typed, setTyped] = useState(text)
  const [current, setCurrent] = useState(-1)
  const found = useLogSearch({ job, attempt, stream, text, exactCase })
  useEffect(() => {
    const timer = setTimeout(() => onText(typed), 250)
    return () => clearTimeout(timer)
  }, [typed, onText])
  useEffect(() => setCurrent(-1), [text, exactCase, stream, attempt])
  const step = (by: number) => {
    const count = found.matches.length
    if (count === 0) return
    const next = (current + by + count) % count
    setCurrent(next)
    const match = found.matches[next]
    if (match) onJump(match)
  }
  const count = found.complete ? `${found.matches.length}` : `${found.matches.length}+`
  return (
    <div className="log-search">
      <div className="row">
        <SearchField
          aria-label={t('log.search')}
          value={typed}
          onChange={setTyped}
          onSubmit={() => step(1)}
          onClear={() => setTyped('')}
          className="log-search-field"
        >
          <Input ref={field} className="input" placeholder={t('log.search')} maxLength={256} />
        </SearchField>
        <ToggleButton
          className="button icon"
          aria-label={t('log.exact_case')}
          isSelected={exactCase}
          onChange={onExactCase}
        >
          Aa
        </ToggleButton>
        {text !== '' && (
          <>
            <Button className="button icon" aria-label={t('log.previous')} onPress={() => step(-1)}>
              <Icon name="up" />
            </Button>
            <Button className="button icon" aria-label={t('log.next')} onPress={() => step(1)}>
              <Icon name="down" />
            </Button>
            <span role="status" className="small muted nowrap">
              {found.busy && found.matches.length === 0
                ? t('log.searching')
                : current >= 0
                  ? t('log.match_of', { number: current + 1, count })
                  : t('log.matches', { count })}
            </span>
          </>
        )}
      </div>
      {found.error ? <FailureText error={found.error} /> : null}
      {text !== '' && found.matches.length > 0 && (
        <ol className="log-matches">
          {found.matches.map((match, index) => (
            <li key={`${match.stream} ${match.offset}`}>
              <button
                type="button"
                aria-current={index === current}
                onClick={() => {
                  setCurrent(index)
                  onJump(match)
                }}
              >
                <span className="muted">{match.line_number ?? ''}</span>
                {stream === null && <span className="muted">{match.stream}</span>}
                <span className="cut mono">{match.line}</span>
              </button>
            </li>
          ))}
          {!found.complete && !found.busy && (
            <li>
              <Button className="button" onPress={found.more}>
                {t('log.search_on')}
              </Button>
            </li>
          )}
        </ol>
      )}
    </div>
  )
}

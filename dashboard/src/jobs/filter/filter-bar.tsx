// The filters as tokens that can be taken away one by one, and a field that completes.
import { useRef, useState, type RefObject } from 'react'
import {
  Autocomplete,
  Button,
  Input,
  ListBox,
  ListBoxItem,
  SearchField,
  Tag,
  TagGroup,
  TagList,
} from 'react-aria-components'
import { Icon } from '../../design/icons'
import { useT } from '../../i18n/i18n'
import { useOffers } from './completion'
import { addTyped, type Token } from './grammar'
import './filter.css'

interface FilterBarProps {
  tokens: Token[]
  onChange: (tokens: Token[]) => void
  field: RefObject<HTMLInputElement | null>
}

export function FilterBar({ tokens, onChange, field }: FilterBarProps) {
  const t = useT()
  const [typed, setTyped] = useState('')
  const [open, setOpen] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const offers = useOffers(typed)
  const commit = (text: string) => {
    if (text.trim() !== '') onChange(addTyped(tokens, text, new Date()))
    setTyped('')
    setOpen(false)
  }
  const choose = (text: string) => {
    const offer = offers.find((each) => each.text === text)
    if (offer?.whole) commit(text)
    else setTyped(text)
    field.current?.focus()
  }
  return (
    <div className="filter-bar">
      {tokens.length > 0 && (
        <TagGroup
          aria-label={t('filter.tokens')}
          onRemove={(keys) => onChange(tokens.filter(({ key, value }) => !keys.has(`${key} ${value}`)))}
        >
          <TagList className="tokens">
            {tokens.map((token) => (
              <Tag
                key={`${token.key} ${token.value}`}
                id={`${token.key} ${token.value}`}
                className="token"
                textValue={`${token.key}:${token.value}`}
              >
                <span className="muted">{token.key === 'q' ? t('filter.text') : token.key}</span>
                <span className="cut">{token.value}</span>
                <Button
                  slot="remove"
                  className="token-remove"
                  aria-label={t('filter.remove', { token: `${token.key}:${token.value}` })}
                >
                  <Icon name="close" />
                </Button>
              </Tag>
            ))}
          </TagList>
        </TagGroup>
      )}
      <div
        ref={box}
        className="filter-field"
        onBlur={(event) => !box.current?.contains(event.relatedTarget) && setOpen(false)}
        onFocus={() => setOpen(true)}
      >
        <Autocomplete
          inputValue={typed}
          onInputChange={(text) => (setTyped(text), setOpen(true))}
          disableAutoFocusFirst
        >
          <SearchField
            aria-label={t('filter.label')}
            onSubmit={commit}
            onKeyDown={(event) => event.key === 'Escape' && setOpen(false)}
          >
            <Input
              ref={field}
              className="filter-input"
              placeholder={t('filter.placeholder')}
              onKeyDown={(event) => {
                if (event.key === 'Backspace' && typed === '' && tokens.length > 0) onChange(tokens.slice(0, -1))
              }}
            />
          </SearchField>
          <div className={open && offers.length > 0 ? 'popover offers' : 'popover offers closed'}>
            <ListBox
              aria-label={t('filter.offers')}
              items={offers.map((offer) => ({ id: offer.text }))}
              onAction={(key) => choose(String(key))}
              selectionMode="none"
            >
              {(offer) => (
                <ListBoxItem id={offer.id} textValue={offer.id}>
                  <span className="mono">{offer.id}</span>
                </ListBoxItem>
              )}
            </ListBox>
          </div>
        </Autocomplete>
      </div>
    </div>
  )
}

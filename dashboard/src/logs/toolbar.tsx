// Above the log: which attempt and stream, how it is shown, and the way to the raw bytes.
import {
  Button,
  ListBox,
  ListBoxItem,
  Popover,
  Select,
  SelectValue,
  ToggleButton,
  ToggleButtonGroup,
} from 'react-aria-components'
import { baseUrl } from '../api/client'
import { setPreferences, usePreferences } from '../app/preferences'
import { Icon } from '../design/icons'
import { language, useT } from '../i18n/i18n'
import { bytes } from '../time/format'
import type { Stream } from './lines'
import type { Shown } from './log-viewer'
import type { LogSizes } from './source'

interface LogToolbarProps {
  job: string
  attempt: number
  attempts: number[]
  shown: Shown
  sizes: LogSizes | null
  following: boolean
  plain: boolean
  onAttempt: (attempt: number) => void
  onShown: (shown: Shown) => void
  onFollow: () => void
  onPlain: () => void
  onStart: () => void
  onEnd: () => void
}

const nextTimes = { absolute: 'relative', relative: 'none', none: 'absolute' } as const

export function LogToolbar(props: LogToolbarProps) {
  const { job, attempt, attempts, shown, sizes } = props
  const t = useT()
  const { logWrap, logTimes } = usePreferences()
  return (
    <div className="log-bar">
      {attempts.length > 1 && (
        <Select aria-label={t('log.attempt')} value={`${attempt}`} onChange={(key) => props.onAttempt(Number(key))}>
          <Button className="button">
            <SelectValue /> <Icon name="open" />
          </Button>
          <Popover className="popover">
            <ListBox>
              {attempts.toReversed().map((number) => (
                <ListBoxItem key={number} id={`${number}`}>
                  {t('log.attempt_number', { number })}
                </ListBoxItem>
              ))}
            </ListBox>
          </Popover>
        </Select>
      )}
      <ToggleButtonGroup
        aria-label={t('log.streams')}
        className="toggles"
        selectionMode="single"
        disallowEmptySelection
        selectedKeys={[shown]}
        onSelectionChange={(keys) => props.onShown([...keys][0] as Shown)}
      >
        <ToggleButton className="button" id="both">
          {t('log.both')}
        </ToggleButton>
        {(['stdout', 'stderr'] as const).map((stream) => (
          <ToggleButton key={stream} className="button" id={stream}>
            {stream} {sizes && <span className="muted">{bytes(sizes[stream], language())}</span>}
          </ToggleButton>
        ))}
      </ToggleButtonGroup>
      <ToggleButton
        className="button"
        isSelected={props.following}
        isDisabled={sizes?.over ?? false}
        onChange={props.onFollow}
      >
        {t('log.follow')}
      </ToggleButton>
      <ToggleButton className="button" isSelected={logWrap} onChange={(wrap) => setPreferences({ logWrap: wrap })}>
        {t('log.wrap')}
      </ToggleButton>
      {shown === 'both' && (
        <Button className="button" onPress={() => setPreferences({ logTimes: nextTimes[logTimes] })}>
          {t(`log.times_${logTimes}`)}
        </Button>
      )}
      <ToggleButton className="button" isSelected={props.plain} onChange={props.onPlain}>
        {t('log.plain')}
      </ToggleButton>
      <Button className="button" onPress={props.onStart}>
        {t('log.start')}
      </Button>
      <Button className="button" onPress={props.onEnd}>
        {t('log.end')}
      </Button>
      <Downloads job={job} attempt={attempt} shown={shown} />
    </div>
  )
}

function Downloads({ job, attempt, shown }: { job: string; attempt: number; shown: Shown }) {
  const t = useT()
  const streams: Stream[] = shown === 'both' ? ['stdout', 'stderr'] : [shown]
  const address = (stream: Stream) =>
    `${baseUrl}api/v1/jobs/${job}/logs?attempt=${attempt}&stream=${stream}&download=true`
  return streams.map((stream) => (
    <a key={stream} className="button" href={address(stream)} download={`${job}-${attempt}.${stream}.log`}>
      <Icon name="down" /> {shown === 'both' ? stream : t('log.download')}
    </a>
  ))
}

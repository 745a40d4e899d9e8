// The keys that do something on this page, from those who registered them.
import { useT } from '../i18n/i18n'
import { Window } from '../design/parts'
import { activeShortcuts } from './keyboard'
import { usePreferences } from './preferences'

export default function Keys({ onClose }: { onClose: () => void }) {
  const t = useT()
  const { shortcuts } = usePreferences()
  return (
    <Window title={t('keys.title')} onClose={onClose}>
      {!shortcuts && <p className="notice warning">{t('keys.are_off')}</p>}
      <dl className="keys">
        {activeShortcuts().map(({ keys, label }) => (
          <div key={keys + label}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{t(label)}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>{t('keys.escape')}</dd>
        </div>
      </dl>
    </Window>
  )
}

import { language } from '../i18n/i18n'

interface ShareProps {
  used: number
  whole: number
  write: (value: number) => string
}

/** How much of something is taken: numbers and a bar. */
export function Share({ used, whole, write }: ShareProps) {
  const share = whole > 0 ? Math.min(1, used / whole) : 0
  const percent = new Intl.NumberFormat(language(), { style: 'percent', maximumFractionDigits: 0 }).format(share)
  return (
    <span className="share">
      <span className="row spread small nowrap">
        <span>
          {write(used)} / {write(whole)}
        </span>
        <span className="muted">{percent}</span>
      </span>
      <span className="meter" aria-hidden="true">
        <i style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  )
}

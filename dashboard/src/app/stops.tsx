// Where there is no page: an address that leads nowhere, and a page that broke.
import { Link } from '@tanstack/react-router'
import { useT } from '../i18n/i18n'

export function NotFound() {
  const t = useT()
  return (
    <div className="page stack">
      <h1>{t('not_found.title')}</h1>
      <p>{t('not_found.text')}</p>
      <p>
        <Link to="/">{t('nav.overview')}</Link>
      </p>
    </div>
  )
}

export function PageError({ error }: { error: unknown }) {
  const t = useT()
  return (
    <div className="page stack">
      <h1>{t('page_error.title')}</h1>
      <p>{t('page_error.text')}</p>
      <pre className="code">{error instanceof Error ? error.message : String(error)}</pre>
      <p>
        {/* The whole page anew: a newer dashboard may have been installed. */}
        <a href={document.location.href}>{t('page_error.reload')}</a>
      </p>
    </div>
  )
}

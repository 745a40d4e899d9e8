// What the job left behind: the tree of its outputs, each file to download.
import { useQuery } from '@tanstack/react-query'
import { api, baseUrl, data } from '../../api/client'
import type { Schemas } from '../../api/client'
import { Command, Copy, Failure, Loading } from '../../design/parts'
import { language, useT } from '../../i18n/i18n'
import { bytes } from '../../time/format'

interface Manifest {
  files?:
    | Record<string, { sha256: string; size_bytes?: number; size?: number }>
    | { path: string; sha256: string; size_bytes?: number; size?: number }[]
}

export function ArtifactsTab({ job }: { job: Schemas['Job'] }) {
  const t = useT()
  const output = job.result?.output
  if (!output) return <p className="muted">{t('artifacts.none')}</p>
  if (output.startsWith('sha256:')) return <Tree job={job} hash={output.slice('sha256:'.length)} />
  return (
    <dl className="facts">
      <dt>{t('artifacts.folder')}</dt>
      <dd className="row">
        <code>{output}</code>
        <Copy text={output} label={t('copy.address')} />
      </dd>
    </dl>
  )
}

function Tree({ job, hash }: { job: Schemas['Job']; hash: string }) {
  const t = useT()
  const tree = useQuery({
    queryKey: ['tree', hash],
    queryFn: async () =>
      (await data(api.GET('/api/v1/trees/{sha256}', { params: { path: { sha256: hash } } }))) as Manifest,
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (tree.error) return <Failure error={tree.error} />
  if (!tree.data) return <Loading />
  const files = filesOf(tree.data)
  return (
    <div className="stack">
      <Command text={`jobyard artifact pull ${job.id} ${job.name.replaceAll(/[^\w.-]/g, '_')}`} />
      <div className="scroll-x">
        <table className="data">
          <thead>
            <tr>
              <th scope="col">{t('artifacts.file')}</th>
              <th scope="col">{t('artifacts.size')}</th>
              <th scope="col">SHA-256</th>
            </tr>
          </thead>
          <tbody>
            {files.map((file) => (
              <tr key={file.path}>
                <td className="break">
                  <a href={`${baseUrl}api/v1/artifacts/${file.sha256}`} download={file.path.split('/').at(-1)}>
                    {file.path}
                  </a>
                </td>
                <td className="nowrap">{bytes(file.size, language())}</td>
                <td className="mono break">{file.sha256.slice(0, 16)}…</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  )
}

function filesOf(manifest: Manifest): { path: string; sha256: string; size: number }[] {
  const files = manifest.files ?? []
  const list = Array.isArray(files) ? files : Object.entries(files).map(([path, file]) => ({ path, ...file }))
  return list.map((file) => ({ path: file.path, sha256: file.sha256, size: file.size_bytes ?? file.size ?? 0 }))
}

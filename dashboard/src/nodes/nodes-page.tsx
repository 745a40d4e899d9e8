export default function Page() {
  return (
    <div className="page">
      <h1>nodes</h1>
    </div>
  )
}

export default function Page() {
  return (
    <div className="page">
      <h1>overview</h1>
    </div>
  )
}

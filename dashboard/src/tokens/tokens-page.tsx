export default function Page() {
  return (
    <div className="page">
      <h1>tokens</h1>
    </div>
  )
}

export default function Page() {
  return (
    <div className="page">
      <h1>audit</h1>
    </div>
  )
}

export default function Page() {
  return (
    <div className="page">
      <h1>reference</h1>
    </div>
  )
}

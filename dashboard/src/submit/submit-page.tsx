export default function Page() {
  return (
    <div className="page">
      <h1>submit</h1>
    </div>
  )
}

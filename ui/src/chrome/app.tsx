import { AuditPage, CgroupsPage, HomePage, IncidentPage, IncidentsPage } from "../pages";
import { page } from "../state";

export function App() {
  switch (page.value) {
    case "home":
      return <HomePage />;
    case "incidents":
      return <IncidentsPage />;
    case "incident":
      return <IncidentPage />;
    case "cgroups":
      return <CgroupsPage />;
    case "audit":
      return <AuditPage />;
    case "node":
      return <p class="page">Node</p>;
  }
}
